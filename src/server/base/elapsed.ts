/**
 * Prints human-readable times, both measurements and limits. For Go's syntax, which is used in Corefiles and logs, see
 * `duration.ts`.
 */

/** Prints a measured time, given in milliseconds, to about three digits: `0.4 ms`, `20 ms`, `2.50 s`, `12.3 s`. */
export function printElapsed(ms: number): string {
  if (ms >= 9995) return `${(ms / 1000).toFixed(1)} s`;
  if (ms >= 999.5) return `${(ms / 1000).toFixed(2)} s`;
  return `${ms < 10 ? ms.toFixed(1).replace(/\.0$/, '') : ms.toFixed(0)} ms`;
}

/** Prints a limit or period, given in milliseconds, as an exact number of seconds: `5 s`, `0.25 s`. */
export function printSpan(ms: number): string {
  return `${ms / 1000} s`;
}
