/** The results of earlier runs, which are stored in the repository with one line per run. */
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release } from 'node:os';
import type { Figure, Peer } from './figures.ts';

/** A benchmark run, stored as a line in `bench/history/NAME.jsonl`. It does not include host names or directories. */
export interface Run {
  /** Date, UTC. */
  readonly date: string;
  /** The repository's commit, followed by `+` if files differed from it. */
  readonly commit: string;
  readonly processor: string;
  readonly processors: number;
  readonly kernel: string;
  readonly node: string;
  /** The load average over one minute at the start. Figures from a loaded machine are unreliable. */
  readonly load: number;
  /** A program that was deliberately run at the same time. */
  readonly neighbour?: string;
  /** Versions by program. */
  readonly peers: Readonly<Record<string, string>>;
  /** Maps a name to its value with the unit, and with the quartiles if it is the median of several rounds. */
  readonly figures: Readonly<
    Record<string, readonly [value: number | null, unit: string, low?: number, high?: number]>
  >;
}

/** The `--busy` program. Half of the time, it reads more memory than the CPU caches hold. */
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

/** Returns the line without a newline. */
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
