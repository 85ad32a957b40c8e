/**
 * Recorded durations of test files, from which a run estimates its own duration. A run also lists its ten slowest files
 * at the end. `npm test -- --record` stores the times measured on the current machine.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** Maps a test file's path to the seconds that it took in the recorded run. */
export type TestTimes = Readonly<Record<string, number>>;

const RECORD: URL = new URL('test-times.json', import.meta.url);
/** The number of files listed at the end of a run. */
const SLOWEST = 10;

export function recordedTimes(): TestTimes {
  return JSON.parse(readFileSync(RECORD, 'utf8')) as TestTimes;
}

/** Updates the times of the files that were run, and drops files that no longer exist. */
export function recordTimes(times: TestTimes, files: readonly string[]): void {
  const all = { ...recordedTimes(), ...times };
  const kept = files.filter((file) => all[file] !== undefined).toSorted();
  const rows = kept.map((file) => `  ${JSON.stringify(file)}: ${all[file]!.toFixed(1)}`);
  writeFileSync(RECORD, `{\n${rows.join(',\n')}\n}\n`);
}

/**
 * Sorts files by duration, longest first, so that a long file does not start last. Files without a recorded time come
 * first.
 */
export function longestFirst(files: readonly string[], times: TestTimes): readonly string[] {
  const seconds = (file: string): number => times[file] ?? Number.POSITIVE_INFINITY;
  return files.toSorted((a, b) => seconds(b) - seconds(a) || (a < b ? -1 : 1));
}

/**
 * An estimate such as `507 files, about 16 minutes (recorded on another day, 2 at a time)`, without a time if none was
 * recorded.
 */
export function estimate(files: readonly string[], times: TestTimes, concurrency: number): string {
  const known = files.map((file) => times[file]).filter((each) => each !== undefined);
  const count = `${files.length} ${files.length === 1 ? 'file' : 'files'}`;
  if (known.length === 0) return `${count}, never timed`;
  const total = known.reduce((sum, each) => sum + each, 0) * (files.length / known.length);
  const longest = known.reduce((most, each) => Math.max(most, each), 0);
  return `${count}, about ${printSpan(Math.max(total / concurrency, longest))} (${concurrency} at a time)`;
}

function printSpan(seconds: number): string {
  if (seconds >= 90) return `${Math.round(seconds / 60)} minutes`;
  const whole = Math.max(1, Math.round(seconds));
  return whole === 1 ? '1 second' : `${whole} seconds`;
}

/**
 * Returns one line for each of the slowest files, with its share of the total time. Empty if there are fewer than two
 * files.
 */
export function slowestLines(times: ReadonlyMap<string, number>): readonly string[] {
  if (times.size < 2) return [];
  const rows = [...times].toSorted(([, a], [, b]) => b - a).slice(0, SLOWEST);
  const sum = (all: Iterable<number>): number => [...all].reduce((a, b) => a + b, 0);
  const share = sum(rows.map(([, each]) => each)) / Math.max(sum(times.values()), 1e-9);
  return [
    `slowest ${rows.length} of ${times.size} files (${Math.round(share * 100)} % of all test time):`,
    ...rows.map(([file, seconds]) => `${seconds.toFixed(1).padStart(7)} s  ${file}`),
  ];
}
