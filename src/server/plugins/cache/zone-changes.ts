/** Detects zone changes by the SOA serial. A zone's denials stay valid until it changes. */
import type { Clock } from '../../base/clock.ts';
import { isInZone } from '../../engine/contract/zone-match.ts';
import { TYPE } from '../../wire/iana.ts';
import { foldName, LOWER, parseName, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { Records } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';

/** Distance in bytes from the end of an SOA record's data back to its serial (RFC 1035 section 3.3.13). */
const SERIAL_FROM_END = 20;
/** Number of seconds to cache a denial from a server that lags behind the others. */
const BEHIND_SECONDS = 1;
/**
 * Serials are often the time in seconds, so the zone may change again within that second while its serial stays the
 * same.
 */
const SAME_SECOND = 2;

const records = new Records();

/** A zone and its most recent known changes, in clock time. */
interface WatchedZone {
  readonly name: WireName;
  serial: number | null;
  /** Denials stored before this time are invalid. */
  since: number;
  heard: number;
}

/**
 * Watches the serials of the zones in a cache. Every negative reply contains its zone's SOA, so no extra query is
 * needed. A newer serial drops all older negative replies for the zone. If all negative replies come from the cache,
 * one of them is refreshed from time to time.
 */
export class ZoneChanges {
  /** Sorted by name length, longest first. */
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
   * @returns the number of seconds for which it may be cached
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
    // Serial number arithmetic (RFC 1982).
    const ahead = zone.serial === null ? 0 : (serial - zone.serial) | 0;
    if (ahead < 0) return BEHIND_SECONDS;
    if (ahead > 0) zone.since = now;
    zone.serial = serial;
    const age = this.#clock.wall() / 1000 - serial;
    return Math.abs(age) < SAME_SECOND ? SAME_SECOND : Infinity;
  }

  /** Records that a denied name now exists, which means that the zone changed even if its serial did not. */
  change(query: Query): void {
    const zone = this.#zoneOf(query);
    if (zone !== null) zone.since = this.#clock.now();
  }

  holds(query: Query, born: number): boolean {
    const zone = this.#zoneOf(query);
    return zone === null || born > zone.since;
  }

  /** True if the query's zone is due for another check, in which case the caller must query it. */
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
 * True if the name at `at`, which may be compressed, equals this one (lower case). Names in a reply have already been
 * validated.
 */
function isNamed(bytes: Uint8Array, start: number, at: number, name: WireName): boolean {
  for (const letter of name) {
    while (bytes[at]! >= 0xc0) at = start + (((bytes[at]! & 0x3f) << 8) | bytes[at + 1]!);
    if (LOWER[bytes[at++]!] !== letter) return false;
  }
  return true;
}
