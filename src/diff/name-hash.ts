/** Two bytes that depend on a name. */
import { HASH_START, nextHash } from '../base/hash.ts';

/** The same for the same name, everywhere (FNV-1a). */
export function hashBytes(name: string): readonly [number, number] {
  let hash = HASH_START;
  for (let at = 0; at < name.length; at++) hash = nextHash(hash, name.charCodeAt(at));
  return [(hash >>> 8) & 255, hash & 255];
}
