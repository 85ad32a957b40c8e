/**
 * Latency during background work. Undisturbed and disturbed load alternate in rounds. Each round has its own ratio, and
 * the median of the ratios counts. Rounds in which other programs used CPU time are repeated.
 */
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Pace } from './peers.ts';
import { figure, type Goal } from './figures.ts';

interface Load {
  readonly program: string;
  readonly port: number;
  readonly rate: number;
  readonly seconds: number;
  readonly file: string;
}

/** A round, which consists of undisturbed load and then load with each disturbance. */
export interface Round {
  readonly undisturbed: Pace;
  readonly disturbed: readonly Pace[];
  /** The share of the machine's CPUs that other programs used, as the maximum over the loads. */
  readonly foreign: number;
}

type Stop = () => void | Promise<void>;
/** Starts a disturbance, and returns a function that stops it. */
export type Disturbance = () => Stop | Promise<Stop>;

/** If other programs use more than this share of the machine, the round is repeated. */
const FOREIGN_MAX = 0.03;
const TICKS_PER_SECOND = 100;
/** The measuring client's CPU. */
const CLIENT = '1';

const mayBeRealTime = spawnSync('chrt', ['-f', '10', 'true']).status === 0;

/** Generates load. If permitted, the client has real-time priority, so that only the server's delays are measured. */
function steadyLoad({ program, port, rate, seconds, file }: Load): Promise<Pace> {
  const words = [
    'taskset',
    '-c',
    CLIENT,
    program,
    String(port),
    String(rate),
    String(seconds),
    file,
  ];
  const [first, ...rest] = mayBeRealTime ? ['chrt', '-f', '10', ...words] : words;
  return new Promise((resolve, reject) => {
    execFile(first!, rest, (error, stdout) => {
      if (error) reject(error);
      else resolve(JSON.parse(stdout) as Pace);
    });
  });
}

/**
 * The command prefix for programs that would normally run on another machine. They use the remaining time on the
 * measuring client's CPU. The kernel's work for such a program (a large write, packets over loopback) cannot always be
 * interrupted. It must not delay the server on the other CPU.
 */
export const elsewhere: readonly string[] = ['taskset', '-c', CLIENT, 'chrt', '--idle', '0'];

/** Does the same for a running process with all its threads. */
export function moveElsewhere(process: number): void {
  spawnSync('chrt', ['--all-tasks', '--idle', '--pid', '0', String(process)]);
  spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', CLIENT, String(process)]);
}

/**
 * Runs rounds until `count` of them are undisturbed, but at most half as many more. Then selects the least disturbed
 * rounds.
 * @param own the benchmark's other running processes, without this one and its finished children
 */
export async function takeRounds(
  count: number,
  load: Load,
  disturbances: readonly Disturbance[],
  own: () => readonly number[],
): Promise<readonly Round[]> {
  // The first replies are slower.
  await steadyLoad({ ...load, seconds: Math.min(2, load.seconds) });
  const taken: Round[] = [];
  const isCalm = ({ foreign }: Round): boolean => foreign <= FOREIGN_MAX;
  while (taken.filter(isCalm).length < count && taken.length < 1.5 * count) {
    let foreign = 0;
    const take = async (): Promise<Pace> => {
      const before = used([process.pid, ...own()]);
      const begin = performance.now();
      const pace = await steadyLoad(load);
      const after = used([process.pid, ...own()]);
      const others = after.all - before.all - (after.own - before.own);
      const seconds = (performance.now() - begin) / 1000;
      foreign = Math.max(foreign, others / seconds / availableParallelism());
      return pace;
    };
    const undisturbed = await take();
    const disturbed: Pace[] = [];
    for (const begin of disturbances) {
      const end = await begin();
      disturbed.push(await take());
      await end();
    }
    taken.push({ undisturbed, disturbed, foreign });
  }
  return taken.toSorted((a, b) => a.foreign - b.foreign).slice(0, count);
}

/** The CPU seconds used by the whole machine and by some processes. */
function used(processes: readonly number[]): { readonly all: number; readonly own: number } {
  const [user = 0, nice = 0, system = 0] = /^cpu +(.*)$/m
    .exec(readFileSync('/proc/stat', 'latin1'))![1]!
    .split(' ')
    .map(Number);
  return {
    all: (user + nice + system) / TICKS_PER_SECOND,
    own: processes.reduce((sum, process) => sum + secondsOf(process), 0),
  };
}

/** The CPU seconds used by a process and its reaped children. */
function secondsOf(process: number): number {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${process}/stat`, 'latin1');
  } catch {
    // The process has ended, so its parent's count includes it.
    return 0;
  }
  const times = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15);
  return times.map(Number).reduce((sum, ticks) => sum + ticks, 0) / TICKS_PER_SECOND;
}

/**
 * Prints the rounds and reports the median ratio of p99.9.
 * @param which the disturbance's index
 */
export function tellRatio(
  name: string,
  rounds: readonly Round[],
  which: number,
  goal: Goal | null,
): void {
  const ratios = rounds.map(
    ({ undisturbed, disturbed }) => disturbed[which]!.p999 / undisturbed.p999,
  );
  for (const [i, { undisturbed, disturbed, foreign }] of rounds.entries())
    console.log(
      `  ${printed(undisturbed)}  →  ${printed(disturbed[which]!)}  ratio ${ratios[i]!.toFixed(2)}  others ${(foreign * 100).toFixed(0)} %`,
    );
  console.log(`  ratios from ${least(ratios).toFixed(2)} to ${least(ratios, -1).toFixed(2)}`);
  figure(name, least(ratios, ratios.length >> 1), '', goal);
}

const printed = ({ p50, p99, p999, sent, received }: Pace): string =>
  `p50 ${p50} p99 ${p99} p99.9 ${p999} µs lost ${sent - received}`;

const least = (values: readonly number[], at = 0): number =>
  values.toSorted((a, b) => a - b).at(at)!;
