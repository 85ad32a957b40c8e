/**
 * Reports a benchmark's figures to `bench/run.ts`, which compares them with goals and stores them. A benchmark that is
 * run directly only prints them.
 */
import { appendFileSync } from 'node:fs';
import type { Spread } from './dnsperf.ts';

/** True if the run only checks that benchmarks work (`bench/run.ts --smoke`). */
export const smoke: boolean = process.env['BENCH_SMOKE'] === '1';

export type Goal = { readonly atMost: number } | { readonly atLeast: number };

export interface Figure {
  /** Identifies the figure, so it must be the same in every run. */
  readonly name: string;
  readonly value: number;
  /** A unit such as `ms`, `MiB` or `µs`. Empty for a ratio or count. */
  readonly unit: string;
  readonly goal: Goal | null;
  /** Only present if the value is the median of several rounds. */
  readonly quartiles?: readonly [number, number];
}

export interface Peer {
  readonly peer: string;
  readonly version: string;
}

/** The environment variable with the path of the file that `bench/run.ts` reads after the benchmark. */
export const FIGURES_FILE: string = 'BENCH_FIGURES';

/** Prints a figure along with its goal, and stores it. */
export function figure(name: string, value: number, unit = '', goal: Goal | null = null): void {
  show({ name, value: rounded(value), unit, goal });
}

/** Prints and stores the median of several rounds and its quartiles. */
export function figureOf(
  name: string,
  { median, quartiles: [low, high] }: Spread,
  goal: Goal | null = null,
): void {
  const quartiles = [rounded(low), rounded(high)] as const;
  show({ name, value: rounded(median), unit: '', goal, quartiles });
}

function show(found: Figure): void {
  // Smoke runs are too short for a comparison with goals.
  console.log(printFigure(smoke ? { ...found, goal: null } : found));
  tell(found);
}

/** Reports a program that was measured for comparison, and its version. */
export function beside(name: string, version: string): void {
  tell({ peer: name, version } satisfies Peer);
}

/** Parses the figures and peers that a benchmark wrote. */
export function readFigures(text: string): {
  readonly figures: readonly Figure[];
  readonly peers: readonly Peer[];
} {
  const lines = text.split('\n').filter((line) => line !== '');
  const told = lines.map((line) => JSON.parse(line) as Figure | Peer);
  return {
    figures: told.filter((each): each is Figure => 'name' in each),
    peers: told.filter((each): each is Peer => 'peer' in each),
  };
}

/** A figure without a value misses its goal. For example, the peer may not have replied. */
export function misses({ value, goal }: Figure): boolean {
  if (goal === null) return false;
  return 'atMost' in goal ? !(value <= goal.atMost) : !(value >= goal.atLeast);
}

/** Formats a figure like `start, median 171 ms (goal ≤ 180)`, with a mark if it misses its goal. */
export function printFigure(figure: Figure): string {
  const { name, value, unit, goal, quartiles } = figure;
  const apart = quartiles === undefined ? '' : ` [${quartiles.join('–')}]`;
  const text = `${name.padEnd(56)} ${String(value).padStart(8)}${apart} ${unit}`.trimEnd();
  if (goal === null) return text;
  return `${text}   (goal ${printGoal(goal)}${misses(figure) ? ': MISSED' : ''})`;
}

/** `≤ 1.1`. */
export function printGoal(goal: Goal): string {
  return 'atMost' in goal ? `≤ ${goal.atMost}` : `≥ ${goal.atLeast}`;
}

/** Rounds to three significant digits, which is the accuracy on a shared machine. */
export function rounded(value: number): number {
  return Number.isFinite(value) ? Number(value.toPrecision(value >= 1000 ? 4 : 3)) : value;
}

function tell(what: Figure | Peer): void {
  const file = process.env[FIGURES_FILE];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(what)}\n`);
}
