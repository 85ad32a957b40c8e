/** Whether what a zone denied still holds: it does until the zone changes, which the serial of its SOA record tells. */
import type { Clock } from '../../base/clock.ts';
import { TYPE } from '../../wire/iana.ts';
import { LOWER, parseName, type WireName } from '../../wire/name.ts';
import { Records } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';

/** From the end of a SOA record's data to its serial, bytes (RFC 1035 section 3.3.13). */
const SERIAL_FROM_END = 20;
/** A denial of a server that is behind the others is kept so long, seconds. */
const BEHIND_SECONDS = 1;
/** Serials are often seconds of the clock: in the present one there may be another change that nobody will see. */
const SAME_SECOND = 2;

const records = new Records();

/**
 * Follows the serial of the zones that a cache stands before. Every denial brings it along, so nobody has to ask for it: when a newer one
 * comes, all denials from before are over. While denials are only answered from memory, one of them is asked for anew from time to time.
 */
export class ZoneChanges {
  readonly #zones: readonly WireName[];
  readonly #everyMs: number;
  readonly #clock: Clock;
  #serial: number | null = null;
  /** Denials that were stored before this do not hold. */
  #since = -Infinity;
  /** When a serial came last, or was asked for. */
  #heard = -Infinity;

  constructor(zones: readonly string[], everyMs: number, clock: Clock) {
    this.#zones = zones.map((zone) => parseName(zone));
    this.#everyMs = everyMs;
    this.#clock = clock;
  }

  /** Takes note of a denial. @returns for how many seconds it may be kept at most */
  observe(reply: Reply): number {
    const serial = this.#serialIn(reply);
    if (serial === null) return Infinity;
    const now = this.#clock.now();
    this.#heard = now;
    // Serials run in a circle (RFC 1982).
    const ahead = this.#serial === null ? 0 : (serial - this.#serial) | 0;
    if (ahead < 0) return BEHIND_SECONDS;
    if (ahead > 0) this.#since = now;
    this.#serial = serial;
    const age = this.#clock.wall() / 1000 - serial;
    return Math.abs(age) < SAME_SECOND ? SAME_SECOND : Infinity;
  }

  /** A name that was denied is there: whatever the serial says, something has changed. */
  change(): void {
    this.#since = this.#clock.now();
  }

  /** Whether a denial that was stored at this time (clock's ms) still holds. */
  holds(born: number): boolean {
    return born > this.#since;
  }

  /** Whether it is time to ask anew. Who is told so does. */
  due(now: number): boolean {
    if (now - this.#heard < this.#everyMs) return false;
    this.#heard = now;
    return true;
  }

  #serialIn(reply: Reply): number | null {
    for (records.of(reply); records.next();) {
      if (records.type !== TYPE.SOA || records.dataLength < SERIAL_FROM_END) continue;
      const { bytes, start, ownerAt, dataAt, dataLength } = records;
      if (!this.#zones.some((zone) => isNamed(bytes, start, ownerAt, zone))) return null;
      const at = dataAt + dataLength - SERIAL_FROM_END;
      return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
    }
    return null;
  }
}

/** Whether the name at `at`, perhaps compressed, is this one (in lower case). Names of a reply have been checked. */
function isNamed(bytes: Uint8Array, start: number, at: number, name: WireName): boolean {
  for (const letter of name) {
    while (bytes[at]! >= 0xc0) at = start + (((bytes[at]! & 0x3f) << 8) | bytes[at + 1]!);
    if (LOWER[bytes[at++]!] !== letter) return false;
  }
  return true;
}
