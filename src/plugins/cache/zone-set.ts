import { foldName, parseName, type WireName } from '../../wire/name.ts';
import type { Query } from '../../wire/query.ts';

/** A few zones, and whether a query's name lies in one of them. */
export class ZoneSet {
  readonly #zones: readonly WireName[];
  readonly #all: boolean;

  /** @param zones absolute names */
  constructor(zones: readonly string[]) {
    this.#zones = zones.map((zone) => foldName(parseName(zone)));
    this.#all = this.#zones.some((zone) => zone.length === 1);
  }

  holds(query: Query): boolean {
    if (this.#all) return true;
    for (const zone of this.#zones) if (endsWith(query.folded, query.nameLength, zone)) return true;
    return false;
  }
}

/** Whether the folded name of `length` bytes is `zone` or below it. */
function endsWith(folded: Uint8Array, length: number, zone: WireName): boolean {
  const from = length - zone.length;
  let at = 0;
  while (at < from) at += folded[at]! + 1;
  if (at !== from) return false;
  for (let i = 0; i < zone.length; i++) if (folded[at + i] !== zone[i]) return false;
  return true;
}
