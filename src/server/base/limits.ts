/** A configurable limit. Every queue, table and buffer has one, with the reason stated next to it. */
export interface Limit {
  readonly default: number;
  readonly min: number;
  readonly max: number;
}

/** Defines a limit and gives the constant its type. */
export function limit(parts: Limit): Limit {
  return parts;
}

/** Clamps `value` to the limit's range. */
export function clamp(value: number, { min, max }: Limit): number {
  return Math.min(max, Math.max(min, value));
}

/** Prints a number of bytes: `64 MiB`, `48 KiB`, `100 bytes`. */
export function printBytes(bytes: number): string {
  const mebi = bytes / (1024 * 1024);
  if (mebi >= 1) return `${Number(mebi.toFixed(1))} MiB`;
  return bytes >= 1024 ? `${Math.round(bytes / 1024)} KiB` : `${bytes} bytes`;
}
