/** Runs stories, each in a separate, isolated lab, or on a model if a lab is not possible. */
import { whyFailed } from '../../../server/base/why-failed.ts';
import { closeSync, existsSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { Problem } from '../../../server/base/problem.ts';
import { furnish, startIsolated } from '../../../tools/lab/isolation.ts';
import { lacksOfMachine, lacksOfStory } from '../../../tools/lab/machine.ts';
import { modelStory, playStory } from '../../../tools/lab/play.ts';
import { firstProcess } from '../../../tools/lab/standing.ts';
import { isAsTold, type StoryOutcome, type Story } from '../../../tools/lab/story.ts';
import { endProcess } from '../../../server/runtime/end-process.ts';
import { EXIT, type Io } from '../command.ts';
import type { RunOptions } from './lab-options.ts';
import { printOutcomes } from './lab-report.ts';
import { untilSignal } from '../until-signal.ts';

/** A story, together with the arguments that make another ndots process run it. */
export interface Performance {
  readonly story: Story;
  readonly words: readonly string[];
}

/** Set in the environment of the process that runs inside the lab's namespaces. */
export const INSIDE = 'NDOTS_LAB_INSIDE';
/** File descriptor for the lab's report. */
export const REPORT_FD = 3;

/** True in the first process inside a lab. */
export function isInside({ env }: Pick<Io, 'env'>): boolean {
  return env[INSIDE] !== undefined;
}

/** The command that starts this program. */
export function ownWords(): readonly string[] {
  return [process.execPath, ...process.execArgv, process.argv[1] ?? ''];
}

/**
 * Runs stories one after another, each in a separate lab, and prints the results.
 * @returns the exit code
 */
export async function performStories(
  chosen: readonly Performance[],
  run: RunOptions,
  io: Io,
): Promise<number> {
  checkFiles(run);
  const path = io.env['PATH'] ?? '';
  const lacks = run.model ? [] : lacksOfMachine(path, run.mode);
  const outcomes: StoryOutcome[] = [];
  let asTold = true;
  let nth = 0;
  for (const { story, words } of chosen) {
    const verb = `ndots ${words[0]}`;
    const own = run.model || lacks.length > 0 ? lacks : lacksOfStory(story.needs, path, run.mode);
    if (story.play === null) {
      if (!run.model)
        io.err(
          `${verb}: ${story.name} is simulated with its model, because kernels differ too much.\n`,
        );
    } else if (own.length > 0) {
      const instead = story.model === null ? 'and there is no model of it' : 'so here is its model';
      io.err(
        `${verb}: ${story.name} cannot be played here (it needs ${own.join(', ')}), ${instead}.\n`,
      );
    } else if (run.model && story.model === null) {
      io.err(`${verb}: there is no model for ${story.name}.\n`);
    }
    const isReal = !run.model && own.length === 0 && story.play !== null;
    if (isReal && story.seconds >= LONG_SECONDS) {
      const sooner = story.model === null ? '' : '; --model predicts it at once';
      io.err(`${verb}: playing ${story.name} takes about ${story.seconds} s${sooner}.\n`);
    }
    const progress = playingProgress(`${story.name}, ${++nth} of ${chosen.length}`, io);
    const outcome = await (isReal ? playOutside(story, words, run, io) : modelStory(story)).finally(
      () => clearInterval(progress),
    );
    if (outcome === null) continue;
    asTold &&= isAsTold(outcome);
    outcomes.push(outcome);
    if (run.output === 'text') printOutcomes([outcome], run, io);
    if (io.signal.aborted) break;
  }
  if (outcomes.length === 0) return EXIT.failed;
  if (run.output !== 'text') printOutcomes(outcomes, run, io);
  if (run.save !== null) save(run.save, outcomes);
  return asTold ? EXIT.ok : EXIT.no;
}

/** Longer stories are announced, because pipes and logs show no progress. */
const LONG_SECONDS = 30;

/** Interval between progress messages, milliseconds. */
const PROGRESS_MS = 500;

function playingProgress(what: string, io: Pick<Io, 'progress'>): NodeJS.Timeout {
  const startedMs = performance.now();
  const tell = (): void =>
    io.progress(() => `playing ${what}, ${Math.floor((performance.now() - startedMs) / 1000)} s`);
  tell();
  return setInterval(tell, PROGRESS_MS);
}

function save(file: string, outcomes: readonly StoryOutcome[]): void {
  try {
    writeFileSync(file, `${JSON.stringify(outcomes)}\n`);
  } catch (error) {
    throw new Problem({
      code: 'unwritable-file',
      text: `${file}: cannot save the result: ${whyFailed(error)}`,
      cause: error,
    });
  }
}

/** Checks in advance that CoreDNS exists and that the output files are writable. */
function checkFiles({ pcap, save, coredns }: RunOptions): void {
  for (const file of [pcap, save]) {
    if (file === null) continue;
    try {
      closeSync(openSync(file, 'a'));
    } catch (error) {
      throw new Problem({
        code: 'unwritable-file',
        text: `${file}: cannot be written: ${whyFailed(error)}`,
        remedy: 'give another file',
        cause: error,
      });
    }
  }
  if (pcap !== null && resolve(pcap).startsWith('/run/')) {
    throw new Problem({
      code: 'lab-run-folder',
      text: `${pcap}: a lab has its own /run, which is deleted with it`,
      remedy: 'give a file outside of /run',
    });
  }
  checkCoredns(coredns);
}

/** @throws Problem if the program does not exist */
export function checkCoredns(file: string | null): void {
  if (file === null || existsSync(file)) return;
  throw new Problem({
    code: 'unreadable-file',
    text: `${file}: cannot read the CoreDNS program`,
    remedy: 'give its path: --server coredns=/usr/local/bin/coredns',
  });
}

/**
 * Runs a story in a process with separate namespaces. Ctrl-C ends it without a verdict, unless the story is over and
 * only `--keep` keeps the lab running.
 */
async function playOutside(
  story: Story,
  words: readonly string[],
  { keep }: RunOptions,
  io: Io,
): Promise<StoryOutcome | null> {
  const child = startIsolated([...ownWords(), ...words], { ...io.env, [INSIDE]: '1' }, [
    'ignore',
    2,
    2,
    'pipe',
  ]);
  const signal = keep ? untilSignal() : io.signal;
  const end = (): void => {
    const first = keep && child.pid !== undefined ? firstProcess(child.pid) : null;
    if (first === null) child.signal('SIGKILL');
    else process.kill(first, 'SIGINT');
  };
  signal.addEventListener('abort', end, { once: true });
  let text = '';
  const report = child.stream(REPORT_FD);
  report.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const { code } = await child.closed;
  signal.removeEventListener('abort', end);
  if (text !== '') return JSON.parse(text) as StoryOutcome;
  throw new Problem({
    code: 'lab-ended',
    text: `${story.name} could not be played, because its lab ended with ${code ?? 'a signal'}`,
    remedy: 'see its output above; ndots lab run --model plays without a lab',
  });
}

export async function performInside(story: Story, run: RunOptions, io: Io): Promise<number> {
  let letGo = (): void => endProcess(EXIT.interrupted);
  process.on('SIGINT', () => letGo());
  furnish();
  const outcome = await playStory(story, {
    ndots: ownWords(),
    coredns: run.coredns,
    mode: run.mode,
    env: io.env,
    pcap: run.pcap,
    linger: async () => {
      if (!run.keep) return;
      io.err(`ndots lab: ${story.name} is over, but its lab keeps running. Ctrl-C ends it.\n`);
      await new Promise<void>((done) => {
        const held = setInterval(() => undefined, 60_000);
        letGo = () => {
          clearInterval(held);
          done();
        };
      });
    },
  });
  writeSync(REPORT_FD, JSON.stringify(outcome));
  return EXIT.ok;
}
