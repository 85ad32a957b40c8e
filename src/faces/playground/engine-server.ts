/** Runs engines in a worker on request. */
import './machine/globals.ts';
import { Problem, problemsIn } from '../../server/base/problem.ts';
import type { EngineName, EngineReply, EngineRequest, ShownProblem } from './engine-messages.ts';
import type { Progress } from './engines/progress.ts';

export type RunEngine = (input: never, progress: Progress) => Promise<unknown>;
export type EngineLoaders = Readonly<Partial<Record<EngineName, () => Promise<RunEngine>>>>;

/** Handles the page's messages in a worker. */
export function serveEngines(load: EngineLoaders): void {
  onmessage = ({ data }: MessageEvent<EngineRequest>) => void run(load, data);
  // The page must not be left waiting after an unhandled rejection.
  addEventListener('unhandledrejection', ({ reason }) => reportError(reason));
}

async function run(load: EngineLoaders, { id, engine, input }: EngineRequest): Promise<void> {
  const send = (reply: EngineReply): void => postMessage(reply);
  try {
    const work = await loaded(load, engine);
    const result = await work(input as never, (text) => send({ id, kind: 'progress', text }));
    send({ id, kind: 'result', result: result as never });
  } catch (error) {
    send({ id, kind: 'problems', problems: problemsOf(error) });
  }
}

/** @throws Problem if the engine's files are missing */
async function loaded(load: EngineLoaders, engine: EngineName): Promise<RunEngine> {
  try {
    return await load[engine]!();
  } catch (error) {
    throw new Problem({
      code: 'engine-missing',
      text: `This page’s engine could not be loaded: ${(error as Error).message}`,
      hint: 'The connection was lost, or the page was replaced with a newer version.',
      remedy: 'Reload the page.',
      cause: error,
    });
  }
}

/** Converts a thrown value into problems. If it is a bug, the problem asks the user to report it. */
function problemsOf(error: unknown): readonly ShownProblem[] {
  const problems = problemsIn(error);
  if (problems === null)
    return [
      {
        code: 'bug',
        text: `The engine failed: ${String(error)}`,
        place: null,
        hint: null,
        remedy: 'This is a bug in ndots. Please report it with this input.',
      },
    ];
  return problems.map(({ code, message, place, hint, remedy }) => ({
    code,
    text: message,
    place: place === null ? null : `${place.file}:${place.line}:${place.column}`,
    hint,
    remedy,
  }));
}
