/** The default size limit for a zone. */
import { memoryLimit } from '../runtime/memory-limit.ts';
import { memoryShare, type MemoryTerms } from '../runtime/memory-share.ts';

/** During an update the previous zone also exists, and both exist in received and served form. */
export const ZONE_MEMORY: MemoryTerms = { times: 4, least: 8 * 1024 * 1024, unlimited: 2 ** 30 };

/**
 * Returns the maximum bytes of one zone's records: a quarter of the container's memory above 95 MiB, 1 GiB without a
 * limit.
 */
export function zoneShare(): number {
  return memoryShare(memoryLimit(), ZONE_MEMORY);
}
