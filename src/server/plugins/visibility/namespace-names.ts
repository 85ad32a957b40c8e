/** Finds the namespace in a cluster name. */
import { holdsAt } from '../../base/copy-bytes.ts';
import { HEADER } from '../../wire/iana.ts';
import { firstName, layoutOf } from '../../wire/layout.ts';
import { LOWER, NAME_MAX, suffixAt, type WireName } from '../../wire/name.ts';
import { Records } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';
import { endOfName } from '../../wire/skip.ts';

const SVC = Uint8Array.of(3, 0x73, 0x76, 0x63);
const POD = Uint8Array.of(3, 0x70, 0x6f, 0x64);

/** Returns true if the namespace `bytes[at, at + length)` is visible. */
export type Sees = (bytes: Uint8Array, at: number, length: number) => boolean;

export class NamespaceNames {
  readonly #zones: readonly WireName[];
  readonly #records = new Records();
  readonly #name = new Uint8Array(NAME_MAX + 1);
  /** Offset of the namespace label found by `find`. */
  #at = -1;

  /** @param zones wire form, lower case */
  constructor(zones: readonly WireName[]) {
    this.#zones = zones;
  }

  /** True if a name (lower case) is at or below `NAMESPACE.svc` or `NAMESPACE.pod` in a zone, and must be hidden. */
  hides(name: Uint8Array, length: number, sees: Sees): boolean {
    for (const zone of this.#zones) {
      const end = suffixAt(name, zone, length);
      if (end > 0 && this.#find(name, end)) return !sees(name, this.#at + 1, name[this.#at]!);
    }
    return false;
  }

  covers(name: Uint8Array, length: number): boolean {
    return this.#zones.some((zone) => suffixAt(name, zone, length) >= 0);
  }

  /** True if the reply contains a hidden name outside the question, either as an owner or in a record's data. */
  hidesAny(reply: Reply, sees: Sees): boolean {
    const records = this.#records;
    const { bytes, start } = reply;
    for (records.of(reply); records.next();) {
      const { ownerAt: owner, type } = records;
      const asked = bytes[owner] === 0xc0 && bytes[owner + 1] === HEADER.SIZE;
      if (!asked && this.#hidesAt(bytes, start, owner, sees)) return true;
      const { dataAt, dataLength } = records;
      if (this.#hidesInData(bytes, start, dataAt, dataAt + dataLength, type, sees)) return true;
    }
    return false;
  }

  /** Checks the names in a record's data, which is `bytes[at, end)`. */
  #hidesInData(
    bytes: Uint8Array,
    start: number,
    at: number,
    end: number,
    type: number,
    sees: Sees,
  ): boolean {
    const shape = layoutOf(type);
    if (shape === undefined || shape.names === 0 || at === end) return false;
    let name = firstName(bytes, start, at, end, shape);
    for (let left = shape.names; left > 0; left--) {
      if (this.#hidesAt(bytes, start, name, sees)) return true;
      name = endOfName(bytes, name);
    }
    return false;
  }

  /**
   * Checks a name in a message, which may be compressed. The message has already been validated, so pointers lead
   * backwards.
   */
  #hidesAt(bytes: Uint8Array, start: number, at: number, sees: Sees): boolean {
    const name = this.#name;
    let length = 0;
    for (;;) {
      const size = bytes[at]!;
      if (size >= 0xc0) {
        at = start + (((size & 0x3f) << 8) | bytes[at + 1]!);
        continue;
      }
      if (length + size >= NAME_MAX) return true;
      name[length++] = size;
      if (size === 0) return this.hides(name, length, sees);
      for (let i = 1; i <= size; i++) name[length++] = LOWER[bytes[at + i]!]!;
      at += size + 1;
    }
  }

  /** Finds the label before `svc` or `pod`, if one of these precedes the zone. */
  #find(name: Uint8Array, end: number): boolean {
    let before = -1;
    let last = -1;
    for (let at = 0; at < end; at += name[at]! + 1) {
      before = last;
      last = at;
    }
    this.#at = before;
    return before >= 0 && (holdsAt(name, last, SVC) || holdsAt(name, last, POD));
  }
}
