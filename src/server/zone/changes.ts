/** The combined differences between versions of a zone. */
import type { Slices } from '../base/slices.ts';
import { TYPE, typeName } from '../wire/iana.ts';
import { foldName, printName, suffixAt, type WireName } from '../wire/name.ts';
import type { Difference } from './difference.ts';
import { partsOf, trimmed } from './stored-record.ts';

/** A record mentioned in differences. */
interface RecordChange {
  /** The final state, which is true if the record exists and false if it was removed. */
  came: boolean;
  /** True if the first change removes it, so the old version must have it. */
  readonly expected: boolean;
  found: boolean;
  bytes: Uint8Array;
}

/**
 * The combined differences. They consist of the old version's records that are removed or whose TTL changes, and the
 * new records. A removed record must exist. If it does not, the two servers had different zones under the same serial,
 * which a full transfer corrects.
 */
export class Changes {
  readonly #origin: WireName;
  readonly #records = new Map<string, RecordChange>();
  /** The affected names in lower case, with their bytes as the key. */
  readonly #names = new Map<string, WireName>();

  private constructor(origin: WireName) {
    this.#origin = origin;
  }

  /** @throws Error */
  static *of(origin: WireName, differences: readonly Difference[]): Slices<Changes> {
    const changes = new Changes(origin);
    for (const { removed, added } of differences) {
      for (const came of [false, true]) {
        for (const bytes of storedRecords(came ? added : removed)) {
          changes.#note(bytes, came);
          yield;
        }
      }
    }
    return changes;
  }

  /** The affected names, each once, in lower case. */
  get names(): Iterable<WireName> {
    return this.#names.values();
  }

  /** Returns true if the changes affect a record from the old version. */
  touches(bytes: Uint8Array): boolean {
    const change = this.#records.get(keyOf(bytes));
    if (change === undefined) return false;
    change.found = true;
    return true;
  }

  /**
   * Yields the remaining records one at a time. Call this after the old version has been read.
   * @throws Error if a removed record did not exist
   */
  *added(): Generator<Uint8Array> {
    for (const { came, expected, found, bytes } of this.#records.values()) {
      if (expected && !found) notThere(bytes);
      if (came) yield bytes;
    }
  }

  #note(bytes: Uint8Array, came: boolean): void {
    // SOA records mark the ends of differences; others were never stored.
    if (partsOf(bytes).type === TYPE.SOA) return;
    const owner = foldName(trimmed(bytes));
    if (suffixAt(owner, this.#origin) < 0) return;
    this.#names.set(Buffer.from(owner).toString('latin1'), owner);
    const key = keyOf(bytes);
    const before = this.#records.get(key);
    if (before === undefined) {
      this.#records.set(key, { came, expected: !came, found: false, bytes });
      return;
    }
    if (!came && !before.came) notThere(bytes);
    before.came = came;
    before.bytes = bytes;
  }
}

function notThere(bytes: Uint8Array): never {
  const owner = printName(trimmed(bytes));
  throw new Error(`differences remove a missing record: ${owner} ${typeName(partsOf(bytes).type)}`);
}

/**
 * Returns a record's identity: owner in lower case, type and data. The identity stays the same if only the TTL changes.
 */
function keyOf(bytes: Uint8Array): string {
  const { fields, type } = partsOf(bytes);
  const owner = Buffer.from(bytes.subarray(0, fields)).toString('latin1');
  const folded = owner.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  return `${folded}${type} ${Buffer.from(bytes.subarray(fields + 10)).toString('latin1')}`;
}

function* storedRecords(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length;) {
    const { fields } = partsOf(bytes.subarray(at));
    const length = (bytes[at + fields + 8]! << 8) | bytes[at + fields + 9]!;
    const end = at + fields + 10 + length;
    yield bytes.subarray(at, end);
    at = end;
  }
}
