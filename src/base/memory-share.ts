/** How much of the process's memory something may take where nobody has said. */

const MIB = 1024 * 1024;
/** A server that serves nothing yet takes so much. Measured. */
const EMPTY = 95 * MIB;

/** What something takes. */
export interface MemoryTerms {
  /** Bytes that the process takes for each byte of it, at the worst moment. */
  readonly times: number;
  /** Without so many bytes it would be of no use. */
  readonly least: number;
  /** Bytes where nothing bounds the process. */
  readonly unlimited: number;
}

/**
 * Bytes of it that may be held.
 * @param limit bytes that the whole process may take (`memoryLimit`); Infinity: no limit
 */
export function memoryShare(limit: number, { times, least, unlimited }: MemoryTerms): number {
  if (limit === Infinity) return unlimited;
  return Math.max(least, Math.floor((limit - EMPTY) / times));
}
