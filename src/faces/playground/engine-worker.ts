/** The worker of the page: loads one engine when it is first asked for, and runs it. */
import './machine/globals.ts';
import { Problem, problemsIn } from '../../server/base/problem.ts';
import type { EngineName, EngineReply, EngineRequest, ShownProblem } from './engine-messages.ts';
import type { Progress } from './engines/progress.ts';

type RunEngine = (input: never, progress: Progress) => Promise<unknown>;

const load: Readonly<Record<EngineName, () => Promise<RunEngine>>> = {
  trace: async () => (await import('./engines/trace-engine.ts')).runTrace,
  lint: async () => (await import('./engines/lint-engine.ts')).runLint,
  diff: async () => (await import('./engines/diff-engine.ts')).runDiff,
  doctor: async () => (await import('./engines/doctor-engine.ts')).runDoctor,
};

onmessage = ({ data }: MessageEvent<EngineRequest>) => void run(data);

async function run({ id, engine, input }: EngineRequest): Promise<void> {
  const send = (reply: EngineReply): void => postMessage(reply);
  try {
    const work = await loaded(engine);
    const result = await work(input as never, (text) => send({ id, kind: 'progress', text }));
    send({ id, kind: 'result', result: result as never });
  } catch (error) {
    send({ id, kind: 'problems', problems: problemsOf(error) });
  }
}

// A rejected promise without a handler must not leave the page waiting.
addEventListener('unhandledrejection', ({ reason }) => reportError(reason));

/** @throws Problem if the files of the engine are not there */
async function loaded(engine: EngineName): Promise<RunEngine> {
  try {
    return await load[engine]();
  } catch (error) {
    throw new Problem({
      code: 'engine-missing',
      text: `The engine of this page could not be loaded: ${(error as Error).message}`,
      hint: 'The connection is gone, or the page was replaced by a newer one.',
      remedy: 'Reload the page.',
      cause: error,
    });
  }
}

/** The problems in anything that was thrown; a bug is one that asks for a report. */
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
