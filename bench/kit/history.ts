/** The results of earlier runs: one line a run, stored in the repository. */
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release } from 'node:os';
import type { Figure, Peer } from './figures.ts';

/** One run of a benchmark: a line of `bench/history/NAME.jsonl`. It contains no host and no directory. */
export interface Run {
  /** Day, UTC. */
  readonly date: string;
  /** Of the repository, with `+` if files differed from it. */
  readonly commit: string;
  readonly processor: string;
  readonly processors: number;
  readonly kernel: string;
  readonly node: string;
  /** Processes waiting for a CPU at the start, averaged over a minute: figures of a loaded machine are unreliable. */
  readonly load: number;
  /** The program that ran beside it on purpose. */
  readonly neighbour?: string;
  /** Versions by program. */
  readonly peers: Readonly<Record<string, string>>;
  /** Values by name, with their unit, and quartiles if the value is the median of several rounds. */
  readonly figures: Readonly<
    Record<string, readonly [value: number | null, unit: string, low?: number, high?: number]>
  >;
}

/** The neighbour of `--busy`: a program that reads more memory than the CPU's caches hold, half of the time. */
export const BUSY: string = 'memory-reader';

export function machine(neighbour: string | null): Omit<Run, 'peers' | 'figures'> {
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: commit(),
    processor: cpus()[0]?.model.trim() ?? '',
    processors: availableParallelism(),
    kernel: release(),
    node: process.version,
    load: Number(loadavg()[0]!.toFixed(1)),
    ...(neighbour !== null && { neighbour }),
  };
}

/** Without newline. */
export function printRun(
  where: Omit<Run, 'peers' | 'figures'>,
  figures: readonly Figure[],
  peers: readonly Peer[],
): string {
  const run: Run = {
    ...where,
    peers: Object.fromEntries(peers.map(({ peer, version }) => [peer, version])),
    figures: Object.fromEntries(
      figures.map(({ name, value, unit, quartiles = [] }) => [name, [value, unit, ...quartiles]]),
    ),
  };
  return JSON.stringify(run);
}

export function record(name: string, line: string): string {
  const file = `bench/history/${name}.jsonl`;
  mkdirSync('bench/history', { recursive: true });
  appendFileSync(file, `${line}\n`);
  return file;
}

function commit(): string {
  const git = (...words: readonly string[]): string =>
    spawnSync('git', words, { encoding: 'utf8' }).stdout.trim();
  return git('rev-parse', '--short=12', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '+');
}
