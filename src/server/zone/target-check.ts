/** Finds NS, MX, SRV and CNAME targets that are probably missing their final dot. */
import type { Place } from '../base/problem.ts';
import { TYPE, typeName } from '../wire/iana.ts';
import { foldName, joinNames, printName, suffixAt, type WireName } from '../wire/name.ts';
import { NODE, type PackedZone } from './packed-zone.ts';
import { ZoneData } from './zone-data.ts';

/** Position of the target in the data of these types. */
const targetAt: ReadonlyMap<number, number> = new Map([
  [TYPE.NS, 0],
  [TYPE.MX, 2],
  [TYPE.SRV, 6],
  [TYPE.CNAME, 0],
]);

/** Maximum number of targets checked per zone; a zone with more was not written by hand. */
const TARGETS_MAX = 10_000;
const STAR = Uint8Array.of(1, 0x2a);

/** A suspicious record. */
export interface Oddity {
  readonly place: Place;
  readonly text: string;
  readonly hint: string;
}

interface Noted {
  readonly owner: WireName;
  readonly type: number;
  readonly target: WireName;
  readonly place: Place;
}

/** Collects targets within the zone while its records are being read, and determines which of them do not exist. */
export class TargetCheck {
  readonly #origin: WireName;
  /** The origin appended to itself, which is how a fully qualified name ends if its final dot is missing. */
  readonly #doubled: WireName | null;
  readonly #noted = new Map<string, Noted>();

  /** @param origin lower case */
  constructor(origin: WireName) {
    this.#origin = origin;
    this.#doubled = origin.length > 1 ? joinNames(origin, origin) : null;
  }

  /** Adds a record, given its data in wire form. */
  note(owner: WireName, type: number, data: Uint8Array, place: Place): void {
    const at = targetAt.get(type);
    if (at === undefined || this.#noted.size >= TARGETS_MAX) return;
    const target = foldName(data.subarray(at));
    if (suffixAt(target, this.#origin) < 0) return;
    if (type === TYPE.CNAME && !this.#isDoubled(target)) return;
    const key = target.join();
    if (!this.#noted.has(key)) this.#noted.set(key, { owner, type, target, place });
  }

  /** Yields the suspicious records in the finished zone. */
  *oddities(packed: PackedZone): Generator<Oddity> {
    const zone = new ZoneData(packed);
    for (const { owner, type, target, place } of this.#noted.values()) {
      if (isThere(zone, target)) continue;
      const name = printName(target);
      const origin = printName(this.#origin);
      const meant = name.slice(0, -origin.length);
      yield {
        place,
        text: `${printName(owner)} ${typeName(type)}: its target ${name} is not in the zone`,
        hint: this.#isDoubled(target)
          ? `The trailing dot is missing: ${meant.slice(0, -1)} means a name under ${origin}, while ${meant} is used unchanged`
          : `Add its addresses, or if ${meant} was meant, write it with a trailing dot.`,
      };
    }
  }

  #isDoubled(target: WireName): boolean {
    return this.#doubled !== null && suffixAt(target, this.#doubled) >= 0;
  }
}

/**
 * Returns true if the zone has anything that concerns the name: records, a wildcard, a DNAME, or a zone cut above it.
 */
function isThere(zone: ZoneData, name: WireName): boolean {
  const how = zone.walk(name, name.length);
  if (how !== 'nothing') return how !== 'exact' || hasRecords(zone, zone.node);
  return (zone.flags(zone.node) & NODE.WILD) !== 0 && zone.child(zone.node, STAR, 0) >= 0;
}

function hasRecords(zone: ZoneData, node: number): boolean {
  zone.sets(node);
  return zone.next();
}
