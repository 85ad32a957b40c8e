/** Runs `ndots lab` as a user would. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { lacksOfMachine, lacksOfStory } from '../../src/tools/lab/machine.ts';
import type { StoryOutcome, Story } from '../../src/tools/lab/story.ts';

const path = process.env['PATH'] ?? '';
const missing = lacksOfMachine(path);

/** The reason why a lab cannot run here, or null if it can. */
export const noLab: string | null = missing.length === 0 ? null : `needs ${missing.join(', ')}`;

/** Why a story cannot be played here, or false if it can. For the `skip` option. */
export function cannotPlay(story: Story): string | false {
  if (story.play === null) return 'has only a model';
  if (noLab !== null) return noLab;
  const lacks = lacksOfStory(story.needs, path);
  return lacks.length === 0 ? false : `needs ${lacks.join(', ')}`;
}

/** The outcome of a lab command. */
export interface LabResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** @param leads true to start it in its own process group, as a shell would */
export function startLab(
  words: readonly string[],
  env: Record<string, string> = {},
  leads = false,
): ChildProcess {
  return spawn(process.execPath, ['src/faces/cli/main.ts', 'lab', ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: leads,
    env: { ...process.env, ...env },
  });
}

export async function runLab(...words: string[]): Promise<LabResult> {
  return runLabIn({}, ...words);
}

/** Does the same with additional environment variables. */
export async function runLabIn(
  env: Record<string, string>,
  ...words: string[]
): Promise<LabResult> {
  const child = startLab(words, env);
  const said = { stdout: '', stderr: '' };
  child.stdout!.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()));
  child.stderr!.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()));
  const code = await new Promise<number | null>((done) => child.on('close', done));
  return { code, ...said };
}

/** Plays a story and returns what it observed. */
export async function play(story: string, ...words: string[]): Promise<StoryOutcome> {
  const { code, stdout, stderr } = await runLab('run', story, '-o', 'json', ...words);
  if (code !== 0 && code !== 1) throw new Error(`${story} ended with ${code}: ${stderr}`);
  const [outcome] = JSON.parse(stdout) as StoryOutcome[];
  return outcome!;
}

/** Describes the expectations that an outcome does not meet. */
export function broken({ acts }: StoryOutcome): string[] {
  return acts.flatMap(({ kind, title, facts }) =>
    facts
      .filter(({ holds }) => !holds)
      .map(
        ({ what, expected, found }) => `${kind}, ${title}: ${what} is ${found}, not ${expected}`,
      ),
  );
}

/** The parts of this machine's state that a lab could have changed: links, rules, namespaces and mounts. */
export function traces(): string {
  const said = [
    ['ip', '-o', 'link'],
    ['ip', 'netns'],
    ['iptables-save'],
    ['nft', 'list', 'ruleset'],
    ['ip', 'route'],
  ].map(([program = '', ...words]) => spawnSync(program, words, { encoding: 'utf8' }).stdout ?? '');
  // Counters and dates may change, and so may the order of flags, although the flags themselves may not.
  return said.join('\n').replaceAll(/^#.*$|\[\d+:\d+\]/gm, '');
}
