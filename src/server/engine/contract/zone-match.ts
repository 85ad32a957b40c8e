/** Matches query names against zones. */
import { foldName, parseName, suffixAt, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';

interface MatchedZone {
  readonly text: string;
  readonly wire: WireName;
}

/** Finds the zone of a query's name among a few zones. A lookup allocates nothing. */
export class ZoneMatch {
  readonly #zones: readonly MatchedZone[];

  /** @param zones absolute names, e.g. `cluster.local.` */
  constructor(zones: readonly string[]) {
    this.#zones = zones
      .map((text) => ({ text, wire: foldName(parseName(text)) }))
      .toSorted((a, b) => b.wire.length - a.wire.length);
  }

  /** Returns the longest zone that contains the question's name, or null. */
  find(query: Query): string | null {
    for (const { text, wire } of this.#zones) if (isInZone(query, wire)) return text;
    return null;
  }

  holds(query: Query): boolean {
    return this.find(query) !== null;
  }

  /** Returns true if any zone contains this name, given in wire form and lower case. */
  holdsName(name: WireName): boolean {
    return this.#zones.some(({ wire }) => suffixAt(name, wire) >= 0);
  }
}

/** Returns true if the question's name is in `zone` (wire form, lower case). */
export function isInZone(query: Query, zone: WireName): boolean {
  return zone.length === 1 || suffixAt(query.folded, zone, query.nameLength) >= 0;
}
