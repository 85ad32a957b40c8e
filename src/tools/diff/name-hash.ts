/** Derives two bytes from a name. */
import { FIXED_HASH_START, nextFixedHash } from '../../server/base/fixed-hash.ts';

/** Deterministic on every machine (FNV-1a). */
export function hashBytes(name: string): readonly [number, number] {
  let hash = FIXED_HASH_START;
  for (let at = 0; at < name.length; at++) hash = nextFixedHash(hash, name.charCodeAt(at));
  return [(hash >>> 8) & 255, hash & 255];
}
