/**
 * Tests whether names are in zones. Both are text in lower case, and both have a final dot or
 * neither has one.
 */

const DOT = 0x2e;

/** True if a name is below a zone, or a search domain, and is not the zone itself. */
export function isBelow(name: string, zone: string): boolean {
  if (zone === '.') return name !== '.';
  // This makes no string: rules call it for every name and every search domain.
  return name.charCodeAt(name.length - zone.length - 1) === DOT && name.endsWith(zone);
}

/**
 * The zone below which both names lie, or which they are; empty: no label at their ends is the
 * same.
 */
export function commonZone(one: string, other: string): string {
  for (let at = 0; at < one.length;) {
    const zone = one.slice(at);
    if (isWithin(other, zone)) return zone;
    const dot = one.indexOf('.', at);
    // Names of cut messages may lack their final dot.
    if (dot < 0) break;
    at = dot + 1;
  }
  return '';
}

/** True if a name or zone is in the zone, or equals it. */
export function isWithin(name: string, zone: string): boolean {
  return name === zone || isBelow(name, zone);
}
