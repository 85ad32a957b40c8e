/** Two bytes that depend on a name. */

/** The same for the same name, everywhere (FNV-1a). */
export function hashBytes(name: string): readonly [number, number] {
  let hash = 0x811c9dc5;
  for (let at = 0; at < name.length; at++)
    hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193) >>> 0;
  return [(hash >>> 8) & 255, hash & 255];
}
