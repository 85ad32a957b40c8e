/** Parses and prints durations in Go's syntax, as used in Corefiles. */

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Converts a duration (`10s`, `1m30s`, `500ms`, `-1.5h`, `0`) to milliseconds. Returns null if it is malformed. */
export function parseDuration(text: string): number | null {
  const match = /^([+-]?)(.+)$/.exec(text);
  if (match === null) return null;
  const [, sign, body] = match;
  if (body === '0') return 0;
  let total = 0;
  let at = 0;
  const part = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y;
  while (at < body!.length) {
    part.lastIndex = at;
    const found = part.exec(body!);
    if (found === null) return null;
    total += Number(found[1]) * unitMs[found[2]!]!;
    at = part.lastIndex;
  }
  return sign === '-' ? -total : total;
}

/** Prints a duration as Go does: `1m30s`, `1.5s`, `250ms`, `0s`. */
export function printDuration(ms: number): string {
  if (ms === 0) return '0s';
  const sign = ms < 0 ? '-' : '';
  const size = Math.abs(ms);
  if (size < 1000) {
    if (size >= 1) return `${sign}${trim(size)}ms`;
    return size >= 1e-3 ? `${sign}${trim(size * 1e3)}µs` : `${sign}${trim(size * 1e6)}ns`;
  }
  const hours = Math.floor(size / 3_600_000);
  const minutes = Math.floor(size / 60_000) % 60;
  const seconds = (size % 60_000) / 1000;
  const head = hours > 0 ? `${hours}h${minutes}m` : minutes > 0 ? `${minutes}m` : '';
  return `${sign}${head}${trim(seconds)}s`;
}

function trim(value: number): string {
  return String(Number(value.toFixed(9)));
}
