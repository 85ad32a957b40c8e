/** The zones that replies are signed for. */
import { TYPE } from '../../wire/iana.ts';
import { foldName, parseName, suffixAt, type WireName } from '../../wire/name.ts';

/** The zones of one directive; the longest that holds a name signs its records. */
export class SignedZones {
  readonly #longestFirst: readonly WireName[];

  /** @param names absolute text */
  constructor(names: readonly string[]) {
    this.#longestFirst = names
      .map((name) => foldName(parseName(name)))
      .toSorted((a, b) => b.length - a.length);
  }

  /** The zone that holds a name (lower case), or null. */
  find(name: Uint8Array, length: number = name.length): WireName | null {
    for (const zone of this.#longestFirst)
      if (zone.length === 1 || suffixAt(name, zone, length) >= 0) return zone;
    return null;
  }

  /** The zone that signs a name's records of a type: DS records belong to the zone above. */
  signerOf(owner: WireName, type: number): WireName | null {
    const zone = this.find(owner);
    if (type !== TYPE.DS || zone === null || zone.length !== owner.length || owner.length === 1)
      return zone;
    return this.find(owner.subarray(owner[0]! + 1)) ?? zone;
  }

  /** True if the name (lower case) is one of the zones. */
  isApex(name: WireName): boolean {
    return this.find(name)?.length === name.length;
  }
}
