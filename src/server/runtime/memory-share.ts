/** Computes default memory shares for the larger consumers in the process. */

const MIB = 1024 * 1024;
/** Memory of a server without any data; measured. */
const EMPTY = 95 * MIB;

/** Memory requirements of a consumer. */
export interface MemoryTerms {
  /** Bytes used by the process per byte of the consumer, in the worst case. */
  readonly times: number;
  /** Minimum in bytes, below which the consumer would be useless. */
  readonly least: number;
  /** Bytes if the process has no limit. */
  readonly unlimited: number;
}

/**
 * Returns the maximum number of bytes the consumer may hold.
 * @param limit bytes that the whole process may use (`memoryLimit`); Infinity: no limit
 */
export function memoryShare(limit: number, { times, least, unlimited }: MemoryTerms): number {
  if (limit === Infinity) return unlimited;
  return Math.max(least, Math.floor((limit - EMPTY) / times));
}
