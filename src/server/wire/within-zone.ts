/** Tests whether names are in zones. Both are lower-case text, and either both or neither have a final dot. */

const DOT = 0x2e;

/** Returns true if a name is below a zone or search domain, but not equal to it. */
export function isBelow(name: string, zone: string): boolean {
  if (zone === '.') return name !== '.';
  // Compare in place, without allocating a string, because rules call this for every name and every search domain.
  return name.charCodeAt(name.length - zone.length - 1) === DOT && name.endsWith(zone);
}

/** Returns the deepest zone that contains both names, or an empty string if their last labels differ. */
export function commonZone(one: string, other: string): string {
  for (let at = 0; at < one.length;) {
    const zone = one.slice(at);
    if (isWithin(other, zone)) return zone;
    const dot = one.indexOf('.', at);
    // Names in messages that were cut may lack their final dot.
    if (dot < 0) break;
    at = dot + 1;
  }
  return '';
}

/** Returns true if a name or zone is in the zone, or is equal to it. */
export function isWithin(name: string, zone: string): boolean {
  return name === zone || isBelow(name, zone);
}
