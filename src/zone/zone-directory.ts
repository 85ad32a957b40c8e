import type { WireName } from '../wire/name.ts';
import { suffixAt } from '../wire/name.ts';

/** Something of a zone. */
export interface OfZone {
  /** Wire form, lower case. */
  readonly origin: WireName;
}

/** Finds the zone that a name lies in among one or thousands. Looking allocates nothing. */
export class ZoneDirectory<T extends OfZone> {
  /** By the number of bytes of their origins, longest first: few lengths however many zones. */
  #byLength: { readonly length: number; readonly zones: Map<number, T[]> }[] = [];
  #all: readonly T[] = [];

  /** All of them. */
  get all(): readonly T[] {
    return this.#all;
  }

  replace(all: readonly T[]): void {
    this.#all = all;
    const byLength = new Map<number, Map<number, T[]>>();
    for (const item of all) {
      const { origin } = item;
      const zones = byLength.get(origin.length) ?? new Map<number, T[]>();
      byLength.set(origin.length, zones);
      const hash = hashOf(origin, 0, origin.length);
      zones.set(hash, [...(zones.get(hash) ?? []), item]);
    }
    this.#byLength = [...byLength]
      .map(([length, zones]) => ({ length, zones }))
      .toSorted((a, b) => b.length - a.length);
  }

  /**
   * The zone with the longest name that holds this one (lower case), or null.
   * @param above only zones above the name count, not one of the very name
   */
  find(name: Uint8Array, length: number, above = false): T | null {
    for (const { length: size, zones } of this.#byLength) {
      if (size > length || (above && size === length)) continue;
      const found = zones.get(hashOf(name, length - size, length));
      if (found === undefined) continue;
      for (const item of found) if (suffixAt(name, item.origin, length) >= 0) return item;
    }
    return null;
  }
}

function hashOf(name: Uint8Array, at: number, end: number): number {
  let hash = 0x811c9dc5;
  for (; at < end; at++) hash = Math.imul(hash ^ name[at]!, 0x01000193);
  return (hash ^ (hash >>> 15)) & 0x3fffffff;
}
