/** Summarizes the recorded values of a figure. */
import { existsSync, readFileSync } from 'node:fs';
import type { Run } from '../../bench/kit/history.ts';

/** A figure's median and range over its recorded runs. */
export interface RecordedFigure {
  readonly middle: number;
  readonly least: number;
  readonly most: number;
  readonly runs: number;
  readonly unit: string;
  /** Program versions in the latest run. */
  readonly peers: Readonly<Record<string, string>>;
}

/** The maximum number of runs. Older runs measured a different program. */
const RUNS_MAX = 7;
/** A valid run's maximum load average. At higher loads, other programs were using the CPUs. */
const LOAD_MAX = 3;

/** @param neighbour the name of the program that ran alongside, or null for runs on an otherwise idle machine */
export function recordedFigure(
  history: string,
  figure: string,
  neighbour: string | null,
  isInverse = false,
): RecordedFigure | null {
  if (!existsSync(history)) return null;
  const runs = readFileSync(history, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Run)
    .filter((run) => (run.neighbour ?? null) === neighbour && run.load <= LOAD_MAX)
    .filter(({ figures }) => typeof figures[figure]?.[0] === 'number')
    .slice(-RUNS_MAX);
  const last = runs.at(-1);
  if (last === undefined) return null;
  const values = runs
    .map(({ figures }) => figures[figure]![0]!)
    .map((value) => (isInverse ? 1 / value : value))
    .toSorted((a, b) => a - b);
  return {
    middle: values[values.length >> 1]!,
    least: values[0]!,
    most: values.at(-1)!,
    runs: runs.length,
    unit: last.figures[figure]![1],
    peers: last.peers,
  };
}
