/** `ndots lab run`: stories in namespaces, or on their models where that cannot be. */
import { closeSync, existsSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { Problem, nearest } from '../base/problem.ts';
import { furnish, startIsolated } from '../lab/isolation.ts';
import { lacksOfMachine, lacksOfStory } from '../lab/machine.ts';
import { modelStory, playStory } from '../lab/play.ts';
import { findStory, stories } from '../lab/stories.ts';
import { isAsTold, type Outcome, type Story } from '../lab/story.ts';
import { EXIT, type Io } from './command.ts';
import type { LabOptions } from './lab-options.ts';
import { printOutcomes } from './lab-report.ts';
import { storyOfFile } from './lab-story.ts';

/** Set in the environment of the process that lives inside the walls. */
export const INSIDE = 'NDOTS_LAB_INSIDE';
/** Where it writes what has become of the lab. */
export const REPORT_FD = 3;

/** The words by which this program is started. */
export function ownWords(): readonly string[] {
  return [process.execPath, ...process.execArgv, process.argv[1] ?? ''];
}

/** Plays the stories that are named, one after the other, each in a lab of its own. */
export async function runStories(options: LabOptions, io: Io): Promise<number> {
  if (io.env[INSIDE] !== undefined) return playInside(options, io);
  const { run } = options;
  const chosen = choose(options);
  checkFiles(options);
  const path = io.env['PATH'] ?? '';
  const lacks = run.model ? [] : lacksOfMachine(path, run.mode);
  const outcomes: Outcome[] = [];
  let asTold = true;
  for (const story of chosen) {
    const own = run.model || lacks.length > 0 ? lacks : lacksOfStory(story.needs, path, run.mode);
    if (story.play === null) {
      if (!run.model)
        io.err(`ndots lab: ${story.name} is played on its model: kernels differ too much.\n`);
    } else if (own.length > 0) {
      const instead = story.model === null ? 'and there is no model of it' : 'so here is its model';
      io.err(
        `ndots lab: ${story.name} cannot be played here (it needs ${own.join(', ')}), ${instead}.\n`,
      );
    } else if (run.model && story.model === null) {
      io.err(`ndots lab: there is no model of ${story.name}.\n`);
    }
    const isReal = !run.model && own.length === 0 && story.play !== null;
    const outcome = isReal ? await playOutside(story, options, io) : await modelStory(story);
    if (outcome === null) continue;
    asTold &&= isAsTold(outcome);
    outcomes.push(outcome);
    if (run.output === 'text') printOutcomes([outcome], run, io);
  }
  if (outcomes.length === 0) return EXIT.failed;
  if (run.output !== 'text') printOutcomes(outcomes, run, io);
  if (run.save !== null) writeFileSync(run.save, `${JSON.stringify(outcomes)}\n`);
  return asTold ? EXIT.ok : EXIT.no;
}

/** The stories of a command line: those that are named, or that of a file. */
function choose({ file, words, run }: LabOptions): readonly Story[] {
  return file === null ? chooseStories(words) : [storyOfFile(file, run.coredns === null)];
}

function chooseStories(names: readonly string[]): readonly Story[] {
  if (names.includes('all')) return stories;
  return names.map((name) => {
    const found = findStory(name);
    if (found !== null) return found;
    const meant = nearest(
      name,
      stories.map((story) => story.name),
    );
    throw new Problem({
      code: 'no-such-story',
      text: `there is no story ${name}`,
      hint: meant === null ? undefined : `Did you mean ${meant}?`,
      remedy: 'ndots lab list shows them',
    });
  });
}

/** Files that are written at the end are tried at the beginning, and CoreDNS must be there. */
function checkFiles({ run: { pcap, save, coredns } }: LabOptions): void {
  for (const file of [pcap, save]) {
    if (file === null) continue;
    try {
      closeSync(openSync(file, 'a'));
    } catch (error) {
      throw new Problem({
        code: 'unwritable-file',
        text: `${file}: cannot be written`,
        remedy: 'name another one',
        cause: error,
      });
    }
  }
  if (pcap !== null && resolve(pcap).startsWith('/run/')) {
    throw new Problem({
      code: 'lab-run-folder',
      text: `${pcap}: a lab has a /run of its own, which goes with it`,
      remedy: 'name a file elsewhere',
    });
  }
  if (coredns !== null && !existsSync(coredns)) {
    throw new Problem({
      code: 'unreadable-file',
      text: `${coredns}: cannot read the CoreDNS to serve with`,
      remedy: 'name its program: --server coredns=/usr/local/bin/coredns',
    });
  }
}

/** Plays one story in a process of its own, behind walls. */
async function playOutside(
  story: Story,
  { run, file }: LabOptions,
  io: Io,
): Promise<Outcome | null> {
  const words = [
    ...[...ownWords(), 'lab', 'run'],
    ...(file === null ? [story.name] : ['-f', resolve(file)]),
    ...(run.coredns === null ? [] : ['--server', `coredns=${resolve(run.coredns)}`]),
    ...(run.pcap === null ? [] : ['--pcap', resolve(run.pcap)]),
    ...(run.keep ? ['--keep'] : []),
    ...['--mode', run.mode],
  ];
  const child = startIsolated(words, { ...io.env, [INSIDE]: '1' }, ['ignore', 2, 2, 'pipe']);
  // Ctrl-C reaches the lab as well, which then ends by itself.
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  let text = '';
  const report = child.stream(REPORT_FD);
  report.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const { code } = await child.closed;
  process.off('SIGINT', ignore);
  if (text !== '') return JSON.parse(text) as Outcome;
  throw new Problem({
    code: 'lab-ended',
    text: `${story.name} could not be played: its lab ended with ${code ?? 'a signal'}`,
    remedy: 'what it said stands above; ndots lab run --model plays without a lab',
  });
}

/** The first process of a lab. */
async function playInside(options: LabOptions, io: Io): Promise<number> {
  const { run } = options;
  furnish();
  const [story] = choose(options) as [Story];
  const outcome = await playStory(story, {
    ndots: ownWords(),
    coredns: run.coredns,
    mode: run.mode,
    env: io.env,
    pcap: run.pcap,
    linger: async () => {
      if (!run.keep) return;
      io.err(
        `ndots lab: ${story.name} is over and its lab stands (process ${process.ppid}). Ctrl-C ends it.\n`,
      );
      await new Promise<void>((done) => {
        const held = setInterval(() => undefined, 60_000);
        for (const signal of ['SIGINT', 'SIGTERM'] as const) {
          process.once(signal, () => {
            clearInterval(held);
            done();
          });
        }
      });
    },
  });
  writeSync(REPORT_FD, JSON.stringify(outcome));
  return EXIT.ok;
}
