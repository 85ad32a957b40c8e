/** How large a zone may be where nobody has said. */
import { memoryLimit } from '../runtime/memory-limit.ts';
import { memoryShare, type MemoryTerms } from '../runtime/memory-share.ts';

/**
 * While a zone is taken the one before is there, too, and both as they came and as they are served.
 */
export const ZONE_MEMORY: MemoryTerms = { times: 4, least: 8 * 1024 * 1024, unlimited: 2 ** 30 };

/**
 * Bytes that the records of one zone may take: a quarter of what the container may take above 95
 * MiB, 1 GiB where nothing bounds it.
 */
export function zoneShare(): number {
  return memoryShare(memoryLimit(), ZONE_MEMORY);
}
