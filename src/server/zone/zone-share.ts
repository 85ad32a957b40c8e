/** The default size limit for a zone. */
import { memoryLimit } from '../runtime/memory-limit.ts';
import { memoryShare, type MemoryTerms } from '../runtime/memory-share.ts';

/** During an update, the previous zone exists as well, and both exist in received and served form. */
export const ZONE_MEMORY: MemoryTerms = { times: 4, least: 8 * 1024 * 1024, unlimited: 2 ** 30 };

/**
 * Returns the maximum size in bytes of a zone's records. This is a quarter of the container's memory above 95 MiB, or 1
 * GiB if there is no limit.
 */
export function zoneShare(): number {
  return memoryShare(memoryLimit(), ZONE_MEMORY);
}
