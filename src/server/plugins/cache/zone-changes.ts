/**
 * Detects that a zone has changed, by the serial of its SOA record: until then its denials hold.
 */
import type { Clock } from '../../base/clock.ts';
import { isInZone } from '../../engine/contract/zone-match.ts';
import { TYPE } from '../../wire/iana.ts';
import { foldName, LOWER, parseName, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { Records } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';

/** From the end of a SOA record's data to its serial, bytes (RFC 1035 section 3.3.13). */
const SERIAL_FROM_END = 20;
/** Time to cache a denial from a server that is behind the others, seconds. */
const BEHIND_SECONDS = 1;
/**
 * Serials are often the time in seconds, so within the current second there may be another change
 * under the same serial.
 */
const SAME_SECOND = 2;

const records = new Records();

/** One zone and its last known changes. Times are the clock's. */
interface WatchedZone {
  readonly name: WireName;
  serial: number | null;
  /** Denials that were stored before this do not hold. */
  since: number;
  heard: number;
}

/**
 * Watches the serials of the zones of a cache. Every negative reply contains its zone's SOA, so no extra
 * query is needed: a newer serial drops all older negative replies of the zone. While
 * negative replies come only from the cache, one of them is refreshed from time to time.
 */
export class ZoneChanges {
  /** Longest names first. */
  readonly #zones: readonly WatchedZone[];
  readonly #everyMs: number;
  readonly #clock: Clock;

  constructor(zones: readonly string[], everyMs: number, clock: Clock) {
    this.#zones = zones
      .map((zone) => ({
        name: foldName(parseName(zone)),
        serial: null,
        since: -Infinity,
        heard: -Infinity,
      }))
      .toSorted((a, b) => b.name.length - a.name.length);
    this.#everyMs = everyMs;
    this.#clock = clock;
  }

  /**
   * Records a denial.
   *
   * @returns for how many seconds it may be cached
   */
  observe(reply: Reply): number {
    for (records.of(reply); records.next();) {
      if (records.type !== TYPE.SOA || records.dataLength < SERIAL_FROM_END) continue;
      const { bytes, start, ownerAt, dataAt, dataLength } = records;
      const zone = this.#zones.find(({ name }) => isNamed(bytes, start, ownerAt, name));
      if (zone === undefined) return Infinity;
      const at = dataAt + dataLength - SERIAL_FROM_END;
      return this.#hear(zone, new DataView(bytes.buffer, bytes.byteOffset).getUint32(at));
    }
    return Infinity;
  }

  #hear(zone: WatchedZone, serial: number): number {
    const now = this.#clock.now();
    zone.heard = now;
    // Serials run in a circle (RFC 1982).
    const ahead = zone.serial === null ? 0 : (serial - zone.serial) | 0;
    if (ahead < 0) return BEHIND_SECONDS;
    if (ahead > 0) zone.since = now;
    zone.serial = serial;
    const age = this.#clock.wall() / 1000 - serial;
    return Math.abs(age) < SAME_SECOND ? SAME_SECOND : Infinity;
  }

  /** A denied name exists: its zone has changed, whatever the serial says. */
  change(query: Query): void {
    const zone = this.#zoneOf(query);
    if (zone !== null) zone.since = this.#clock.now();
  }

  holds(query: Query, born: number): boolean {
    const zone = this.#zoneOf(query);
    return zone === null || born > zone.since;
  }

  /** True if the query's zone should be queried again now; the caller that gets true must do it. */
  due(query: Query, now: number): boolean {
    const zone = this.#zoneOf(query);
    if (zone === null || now - zone.heard < this.#everyMs) return false;
    zone.heard = now;
    return true;
  }

  #zoneOf(query: Query): WatchedZone | null {
    for (const zone of this.#zones) if (isInZone(query, zone.name)) return zone;
    return null;
  }
}

/**
 * True if the name at `at`, perhaps compressed, is this one (in lower case). Names of a reply have
 * been checked.
 */
function isNamed(bytes: Uint8Array, start: number, at: number, name: WireName): boolean {
  for (const letter of name) {
    while (bytes[at]! >= 0xc0) at = start + (((bytes[at]! & 0x3f) << 8) | bytes[at + 1]!);
    if (LOWER[bytes[at++]!] !== letter) return false;
  }
  return true;
}
