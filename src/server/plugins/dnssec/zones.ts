/** The zones that replies are signed for. */
import { TYPE } from '../../wire/iana.ts';
import { foldName, parseName, suffixAt, type WireName } from '../../wire/name.ts';

/** One directive's zones. A name's records are signed by the longest zone that contains it. */
export class SignedZones {
  readonly #longestFirst: readonly WireName[];

  /** @param names absolute text */
  constructor(names: readonly string[]) {
    this.#longestFirst = names
      .map((name) => foldName(parseName(name)))
      .toSorted((a, b) => b.length - a.length);
  }

  /** Returns the zone that contains a name (lower case), or null. */
  find(name: Uint8Array, length: number = name.length): WireName | null {
    for (const zone of this.#longestFirst)
      if (zone.length === 1 || suffixAt(name, zone, length) >= 0) return zone;
    return null;
  }

  /** Returns the zone that signs a name's records of one type; DS records belong to the parent zone. */
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
