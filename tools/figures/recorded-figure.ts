/** The recorded values of a figure, over runs. */
import { existsSync, readFileSync } from 'node:fs';
import type { Run } from '../../bench/kit/history.ts';

/** The middle and the range of a figure over the recorded runs. */
export interface RecordedFigure {
  readonly middle: number;
  readonly least: number;
  readonly most: number;
  readonly runs: number;
  readonly unit: string;
  /** Versions by program, as in the last run. */
  readonly peers: Readonly<Record<string, string>>;
}

/** Older runs measured another program. */
const RUNS_MAX = 7;
/** The load average of a run that counts. At a higher one, other programs had the CPUs. */
const LOAD_MAX = 3;

/** @param neighbour of which condition: null for a machine with nothing else to do, else the neighbour's name */
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
