/** Default shares of the process's memory for its larger consumers. */

const MIB = 1024 * 1024;
/** Memory of a server that serves nothing yet; measured. */
const EMPTY = 95 * MIB;

/** The memory requirements of a consumer. */
export interface MemoryTerms {
  /** Bytes of the process per byte of the consumer, at the worst moment. */
  readonly times: number;
  /** With fewer bytes it would be useless. */
  readonly least: number;
  /** Bytes if the process has no limit. */
  readonly unlimited: number;
}

/**
 * The most bytes that the consumer may hold.
 * @param limit bytes that the whole process may use (`memoryLimit`); Infinity: no limit
 */
export function memoryShare(limit: number, { times, least, unlimited }: MemoryTerms): number {
  if (limit === Infinity) return unlimited;
  return Math.max(least, Math.floor((limit - EMPTY) / times));
}
