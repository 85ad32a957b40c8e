import type { Slices } from '../base/slices.ts';
import { TYPE, typeName } from '../wire/iana.ts';
import { foldName, LOWER, nameLength, printName, suffixAt, type WireName } from '../wire/name.ts';
import { changedZone } from './changed-zone.ts';
import { Changes } from './changes.ts';
import { difference, type Difference } from './difference.ts';
import { putRecord, soaDataIn, trimmed } from './stored-record.ts';
import { GrowingBytes } from './growing.ts';
import { bytesOf, type PackedZone } from './packed-zone.ts';
import { isNewer } from './serial.ts';
import { serialIn, ZoneBuilder } from './zone-builder.ts';
import { ZoneData } from './zone-data.ts';

/** The result of a transfer from a primary. */
export interface Transferred {
  /** Null if the zone is unchanged. */
  readonly packed: PackedZone | null;
  readonly serial: number;
  /** The changes, if the primary sent them. */
  readonly differences: readonly Difference[] | undefined;
  readonly records: number;
}

/** The memory for one transfer, in bytes. */
export interface IncomingRoom {
  /** Maximum memory for a zone's records. */
  readonly maxBytes: number;
  /**
   * Claims memory for more bytes of records.
   * @throws Error if there is not enough
   */
  readonly claim: (bytes: number) => void;
  /**
   * Claims memory for bytes other than records.
   * @throws Error if there is not enough
   */
  readonly reserve: (bytes: number) => void;
}

/** Maximum number of records in differences, which are stored individually, unlike those of a whole zone. */
const DIFFERENCE_RECORDS_MAX = 100_000;
/** Maximum size of the records in differences, in bytes. */
const DIFFERENCE_BYTES_MAX = 16 * 1024 * 1024;

/** The kind of record expected next in a transfer. */
type TransferState = 'start' | 'second' | 'whole' | 'removed' | 'added' | 'end';

/** Assembles a zone from the records of a transfer as they arrive. */
export class IncomingZone {
  readonly #origin: WireName;
  readonly #old: PackedZone | null;
  readonly #maxBytes: number;
  readonly #claim: (bytes: number) => void;
  readonly #reserve: (bytes: number) => void;
  #builder: ZoneBuilder | null = null;
  #state: TransferState = 'start';
  #serial = 0;
  #soa: { owner: WireName; ttl: number; data: Uint8Array } | null = null;
  #records = 0;
  #bytes = 0;
  #removed = new GrowingBytes();
  #added = new GrowingBytes();
  readonly #differences: Difference[] = [];

  constructor(
    origin: WireName,
    old: PackedZone | null,
    { maxBytes, claim, reserve }: IncomingRoom,
  ) {
    this.#origin = origin;
    this.#old = old;
    this.#maxBytes = maxBytes;
    this.#claim = claim;
    this.#reserve = reserve;
  }

  get isComplete(): boolean {
    return this.#state === 'end';
  }

  /** Size of the records received so far, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Counts the received part as at least this many bytes.
   * @throws Error if there are too many
   */
  takesAtLeast(bytes: number): void {
    this.#bytes = Math.max(this.#bytes, bytes);
    if (this.#bytes > this.#maxBytes)
      throw new Error(`the zone needs more than ${this.#maxBytes} bytes`);
  }

  /**
   * Processes a record.
   * @param owner bytes that begin with the record's name
   * @returns true if it was the last one
   * @throws Error
   */
  take(owner: Uint8Array, type: number, ttl: number, data: GrowingBytes): boolean {
    this.#records++;
    const size = nameLength(owner) + 10 + data.length;
    this.takesAtLeast(this.#bytes + size);
    this.#claim(size);
    const isSoa = type === TYPE.SOA;
    // An SOA record marks the start of a new part of the transfer, unless its name is not the zone's.
    if (isSoa && !isSameName(trimmed(owner), this.#origin))
      throw new Error(`the SOA record belongs to ${printName(owner)}`);
    if (this.#state === 'removed' || this.#state === 'added') this.#boundDifferences();
    switch (this.#state) {
      case 'start':
        if (!isSoa) throw new Error(`the transfer begins with a record of type ${typeName(type)}`);
        this.#serial = serialIn(data.bytes);
        this.#soa = { owner: trimmed(owner).slice(), ttl, data: data.written.slice() };
        // If the serial is not newer, nothing has changed and the rest is ignored.
        this.#state =
          this.#old !== null && !isNewer(this.#serial, this.#old.serial) ? 'end' : 'second';
        return this.isComplete;
      case 'second':
        // A second SOA record right after the first starts differences (RFC 1995 section 4).
        if (isSoa && this.#old !== null && serialIn(data.bytes) !== this.#serial) {
          this.#state = 'removed';
          putRecord(this.#removed, trimmed(owner), type, ttl, data.written);
          return false;
        }
        this.#builder = new ZoneBuilder(this.#origin);
        this.#state = 'whole';
        this.#addSoa();
        return this.#whole(owner, type, ttl, data);
      case 'whole':
        return this.#whole(owner, type, ttl, data);
      case 'removed':
        if (isSoa) this.#state = 'added';
        putRecord(isSoa ? this.#added : this.#removed, trimmed(owner), type, ttl, data.written);
        return false;
      case 'added':
        if (!isSoa) {
          putRecord(this.#added, trimmed(owner), type, ttl, data.written);
          return false;
        }
        this.#follows(difference(this.#removed, this.#added));
        this.#removed = new GrowingBytes();
        this.#added = new GrowingBytes();
        if (serialIn(data.bytes) === this.#serial) {
          this.#state = 'end';
          return true;
        }
        putRecord(this.#removed, trimmed(owner), type, ttl, data.written);
        this.#state = 'removed';
        return false;
      case 'end':
        return true;
    }
  }

  #boundDifferences(): void {
    if (this.#records > DIFFERENCE_RECORDS_MAX)
      throw new Error(`differences of more than ${DIFFERENCE_RECORDS_MAX} records`);
    if (this.#bytes > DIFFERENCE_BYTES_MAX)
      throw new Error(`differences of more than ${DIFFERENCE_BYTES_MAX} bytes`);
  }

  #whole(owner: Uint8Array, type: number, ttl: number, data: GrowingBytes): boolean {
    if (type === TYPE.SOA) {
      if (serialIn(data.bytes) !== this.#serial)
        throw new Error('the zone changed during the transfer');
      this.#state = 'end';
      return true;
    }
    this.#builder!.addTransferred(owner, type, ttl, data.bytes, data.length);
    return false;
  }

  #addSoa(): void {
    const { owner, ttl, data } = this.#soa!;
    this.#builder!.add(owner, TYPE.SOA, ttl, data);
  }

  /**
   * Checks that each difference continues from the previous one, and that the first one starts at the known version.
   */
  #follows(next: Difference): void {
    const at = this.#differences.at(-1)?.to ?? this.#old!.serial;
    if (next.from !== at)
      throw new Error(`differences continue at serial ${next.from} instead of ${at}`);
    this.#differences.push(next);
  }

  /**
   * Checks that differences begin at the local SOA record and end at the one that the transfer announced (RFC 1995
   * section 4). If not, the two servers had different zones under the same serial, which a full transfer corrects.
   * @throws Error
   */
  #checkSoas(differences: readonly Difference[]): void {
    const here = new ZoneData(this.#old!);
    const at = here.soa();
    if (!isSameSoa(soaDataIn(differences[0]!.removed), here.data.subarray(at, at + here.value)))
      throw new Error('differences begin at an SOA record other than the current one');
    if (!isSameSoa(soaDataIn(differences.at(-1)!.added), this.#soa!.data))
      throw new Error('differences end at an SOA record other than the announced one');
  }

  *finish(): Slices<Transferred> {
    const serial = this.#serial;
    const records = this.#records;
    if (this.#builder !== null) {
      if (this.#state !== 'end') throw new Error('the transfer ended early');
      const packed = yield* this.#builder.packing();
      return { packed, serial, differences: undefined, records };
    }
    const differences = this.#differences;
    if (differences.length === 0) return { packed: null, serial, differences: undefined, records };
    this.#checkSoas(differences);
    // The next version is built while the old one still exists, and is nearly as large.
    this.#reserve(bytesOf(this.#old));
    const changes = yield* Changes.of(this.#origin, differences);
    const packed = yield* changedZone(this.#old!, changes, this.#soa!);
    return { packed, serial, differences, records };
  }
}

/** Size in bytes of the five numbers after the two names in an SOA record's data. */
const SOA_NUMBERS = 20;

/** Returns true if two SOA records have equal data, ignoring the case of names (RFC 4343). */
function isSameSoa(a: Uint8Array, b: Uint8Array): boolean {
  const names = a.length - SOA_NUMBERS;
  return (
    a.length === b.length &&
    a.every((byte, i) => (i < names ? LOWER[byte] === LOWER[b[i]!] : byte === b[i]))
  );
}

/** @param origin lower case */
function isSameName(name: WireName, origin: WireName): boolean {
  return name.length === origin.length && suffixAt(foldName(name), origin) === 0;
}
