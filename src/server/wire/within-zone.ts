/**
 * Tells whether names lie in zones. Both are text in lower case, and both have a final dot or
 * neither has one.
 */

/** Whether a name lies below a zone, or a search domain, and is not the zone itself. */
export function isBelow(name: string, zone: string): boolean {
  return zone === '.' ? name !== '.' : name.endsWith(`.${zone}`);
}

/** Whether a name or zone lies in the zone, or is it. */
export function isWithin(name: string, zone: string): boolean {
  return name === zone || isBelow(name, zone);
}
