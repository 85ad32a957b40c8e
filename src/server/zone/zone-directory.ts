import { hashBytes } from '../base/hash.ts';
import type { WireName } from '../wire/name.ts';
import { suffixAt } from '../wire/name.ts';

/** An item that belongs to a zone. */
export interface OfZone {
  /** Wire form, lower case. */
  readonly origin: WireName;
}

/**
 * Finds the zone for a name among one or thousands of zones. A lookup allocates nothing, and adding or removing a zone
 * does not affect the others.
 */
export class ZoneDirectory<T extends OfZone> {
  /** By the length of their origins, longest first. There are only a few lengths, even if there are many zones. */
  #byLength: { readonly length: number; readonly zones: Map<number, T[]> }[] = [];

  *all(): Generator<T> {
    for (const { zones } of this.#byLength) for (const same of zones.values()) yield* same;
  }

  /** Adds an item, replacing any that has the same origin. */
  put(item: T): void {
    const { origin } = item;
    const { length } = origin;
    let group = this.#byLength.find((one) => one.length === length);
    if (group === undefined) {
      group = { length, zones: new Map() };
      this.#byLength = [...this.#byLength, group].toSorted((a, b) => b.length - a.length);
    }
    const hash = hashOf(origin, 0, length);
    const others = group.zones.get(hash)?.filter((one) => !isOf(one, origin)) ?? [];
    group.zones.set(hash, [...others, item]);
  }

  delete(origin: WireName): void {
    const { length } = origin;
    const group = this.#byLength.find((one) => one.length === length);
    if (group === undefined) return;
    const hash = hashOf(origin, 0, length);
    const others = group.zones.get(hash)?.filter((one) => !isOf(one, origin)) ?? [];
    if (others.length > 0) group.zones.set(hash, others);
    else group.zones.delete(hash);
    if (group.zones.size === 0) this.#byLength = this.#byLength.filter((one) => one !== group);
  }

  /**
   * Returns the longest zone that contains this name (lower case), or null.
   * @param above true to consider only zones above the name, excluding one with the same name
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

function isOf({ origin: one }: OfZone, other: WireName): boolean {
  return one.length === other.length && suffixAt(one, other) === 0;
}

/** Returns a small integer. */
function hashOf(name: Uint8Array, at: number, end: number): number {
  return hashBytes(name, at, end) & 0x3fffffff;
}
