/** Numbers, times and lists in reports. */

/** Of fewer a percentage says nothing. */
const PERCENT_LEAST = 10;

/** `12 of 340 (3.5 %)`, `2 of 7`. */
export function share(part: number, whole: number): string {
  if (whole < PERCENT_LEAST) return `${part} of ${whole}`;
  return `${part} of ${whole} (${percent(part, whole)})`;
}

/** `3.5 %`. A share that is not zero is not printed as zero. */
export function percent(part: number, whole: number): string {
  const value = whole === 0 ? 0 : (100 * part) / whole;
  if (value > 0 && value < 0.05) return '<0.1 %';
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`;
}

/** Of how many replies, read to their end, so few show something. */
export function shownBy(few: number, read: number): string {
  return `${few === 0 ? 'none' : few} of ${read} replies that were read to their end show${few > 1 ? '' : 's'} it`;
}

/** `a, b, c and 4 more`. */
export function listed(words: readonly string[], most = 3): string {
  const different = [...new Set(words)];
  const shown = different.slice(0, most).join(', ');
  return different.length > most ? `${shown} and ${different.length - most} more` : shown;
}

/** A sentence with its full stop, which the dot of a name at its end is as well. */
export function sentence(text: string): string {
  return text.endsWith('.') ? text : `${text}.`;
}

/** `03:07:20`, UTC. */
export function clock(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString().slice(11, 19) : '–';
}

/**
 * `from 12:00:00 to 12:00:05`, or `at 12:00:00` if both times print the same.
 * @param how `fine` to print fractions of a second if the times are less than two seconds apart
 */
export function fromTo(fromMs: number, toMs: number, how: 'fine' | 'seconds' = 'seconds'): string {
  const isFine = how === 'fine' && Number.isFinite(toMs - fromMs) && toMs - fromMs < 2000;
  const [from, to] = [fromMs, toMs].map(isFine ? fineClock : clock);
  return from === to ? `at ${from}` : `from ${from} to ${to}`;
}

/** `between 12:00:00 and 12:00:05`, or `at 12:00:00` if both times print the same. */
export function between(...times: Parameters<typeof fromTo>): string {
  return fromTo(...times).replace(/^from (.*) to/, 'between $1 and');
}

/** `03:07:20.125`, UTC. */
function fineClock(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}

/** The text with an upper-case first letter. */
export function capitalised(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

/** `2026-11-30 03:07 UTC`. */
export function minute(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** `0.4 ms`, `820 ms`, `5.0 s`. */
export function took(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
}

/** `1.2 s to 3.0 s`, or only `1.2 s` if both are printed alike. */
export function tookFrom(leastMs: number, mostMs: number): string {
  const [least, most] = [took(leastMs), took(mostMs)];
  return least === most ? least : `${least} to ${most}`;
}

/** The keys of the list with their counts, the most frequent first. */
export function tally<T>(
  list: readonly T[],
  keyOf: (each: T) => string,
): readonly (readonly [string, number])[] {
  return [...Map.groupBy(list, keyOf)]
    .map(([key, { length }]) => [key, length] as const)
    .toSorted(([, one], [, other]) => other - one);
}

/** The keys that occur in the list, the most frequent first. */
export function keysOf<T>(list: readonly T[], keyOf: (each: T) => string): readonly string[] {
  return tally(list, keyOf).map(([key]) => key);
}
