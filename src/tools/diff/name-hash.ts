/** Two bytes that depend on a name. */
import { FIXED_HASH_START, nextFixedHash } from '../../server/base/fixed-hash.ts';

/** The same for the same name, everywhere (FNV-1a). */
export function hashBytes(name: string): readonly [number, number] {
  let hash = FIXED_HASH_START;
  for (let at = 0; at < name.length; at++) hash = nextFixedHash(hash, name.charCodeAt(at));
  return [(hash >>> 8) & 255, hash & 255];
}
