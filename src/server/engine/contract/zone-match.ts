/** Matches query names against zones. */
import { foldName, parseName, suffixAt, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';

interface MatchedZone {
  readonly text: string;
  readonly wire: WireName;
}

/** Determines which of a few zones a query's name belongs to. A lookup allocates no memory. */
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

  /** Returns true if any zone contains this name, which is given in wire form and lower case. */
  holdsName(name: WireName): boolean {
    return this.#zones.some(({ wire }) => suffixAt(name, wire) >= 0);
  }
}

/** Returns true if the question's name is in `zone`, which is given in wire form and lower case. */
export function isInZone(query: Query, zone: WireName): boolean {
  return zone.length === 1 || suffixAt(query.folded, zone, query.nameLength) >= 0;
}
