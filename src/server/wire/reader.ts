import { copyOf } from '../base/copy-bytes.ts';
import { HEADER } from './iana.ts';
import { NAME_MAX, printName, type WireName } from './name.ts';

/** Explains why bytes are not a DNS message, with an offset. Reading throws no other errors. */
export class ReadError extends Error {
  override readonly name = 'ReadError';
  /** The fault, in words. */
  readonly reason: string;
  /** Offset from the start of the message, in bytes. */
  readonly offset: number;

  constructor(reason: string, offset: number) {
    super(`${reason} at byte ${offset}`);
    this.reason = reason;
    this.offset = offset;
  }
}

/** Returns null if the bytes cannot be read. */
export function readable<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ReadError)) throw error;
    return null;
  }
}

/** Maximum number of pointers per name. Every label could have its own pointer, and 255 bytes hold 127 labels. */
export const HOPS_MAX = 126;

const scratch = new Uint8Array(NAME_MAX);

/**
 * Reads consecutive fields, never beyond `end`. A compression pointer must lead backwards, to a position after the
 * header and before all parts of the same name. This guarantees that reading terminates (RFC 1035 section 4.1.4).
 */
export class Reader {
  readonly message: Uint8Array;
  /** The start of the message within `message`. Compression pointers are counted from here. */
  readonly start: number;
  /** The position where reading ends, which is moved while a record's data is read. */
  end: number;
  at: number;

  constructor(message: Uint8Array, start = 0, end: number = message.length) {
    this.message = message;
    this.start = start;
    this.end = end;
    this.at = start;
  }

  /** Offset from the start of the message, in bytes. */
  get offset(): number {
    return this.at - this.start;
  }

  /** Number of bytes up to `end`. */
  get left(): number {
    return this.end - this.at;
  }

  u8(): number {
    this.#need(1, 'a byte');
    return this.message[this.at++]!;
  }

  u16(): number {
    this.#need(2, 'a 16-bit number');
    const value = (this.message[this.at]! << 8) | this.message[this.at + 1]!;
    this.at += 2;
    return value;
  }

  u32(): number {
    const high = this.u16();
    return high * 0x10000 + this.u16();
  }

  u48(): number {
    const high = this.u16();
    return high * 0x1_0000_0000 + this.u32();
  }

  /** Returns a copy of the next `count` bytes. */
  bytes(count: number): Uint8Array {
    this.#need(count, `${count} bytes`);
    this.at += count;
    return copyOf(this.message, this.at - count, this.at);
  }

  /** Returns a copy of all bytes up to `end`. */
  rest(): Uint8Array {
    return this.bytes(this.left);
  }

  /** Reads a character string, which is a length byte followed by that many bytes. */
  string(): Uint8Array {
    return this.bytes(this.u8());
  }

  /** Reads a name as absolute text with escapes. */
  name(): string {
    this.wireNameInto(scratch);
    return printName(scratch);
  }

  /**
   * Reads a name that must not be compressed because its type forbids it (RFC 3597 section 4). This is used for data
   * with any number of names, where pointers would let every two bytes expand to 255.
   */
  fullName(): string {
    for (let at = this.at; at < this.end && this.message[at] !== 0; at += this.message[at]! + 1) {
      if (this.message[at]! >= 0xc0) this.fail('a name is compressed although it must not be', at);
    }
    return this.name();
  }

  /** Reads a name in wire form, decompressed. */
  wireName(): WireName {
    const length = this.wireNameInto(scratch);
    return scratch.slice(0, length);
  }

  /**
   * Reads a name in wire form, decompressed, into a buffer with room for 255 bytes. Allocates nothing.
   * @returns its length
   */
  wireNameInto(to: Uint8Array): number {
    const { message } = this;
    let from = this.at;
    this.at = checkName(message, this.start, from, this.end);
    for (let length = 0; ;) {
      const size = message[from]!;
      if (size >= 0xc0) {
        from = this.start + (((size & 0x3f) << 8) | message[from + 1]!);
        continue;
      }
      for (const stop = from + size; from <= stop; from++) to[length++] = message[from]!;
      if (size === 0) return length;
    }
  }

  fail(reason: string, at: number = this.at): never {
    throw new ReadError(reason, at - this.start);
  }

  #need(count: number, what: string): void {
    if (this.left < count) this.fail(`the message ends before ${what}`);
  }
}

/** Pointers can reach only offsets below this (RFC 1035 section 4.1.4). */
const REACH = 0x4000;

/**
 * Limit on the pointers followed by a message's names: `HOPS_FREE` in total, plus `HOPS_PER_NAME` for each name. Names
 * with ordinary compression follow one or two. Later scans of the names take a proportional amount of time.
 */
const HOPS_FREE = 1024;
const HOPS_PER_NAME = 8;

/**
 * The positions of labels in a message's checked names. A pointer to any other position may still read as a name, but
 * that name changes with the fields there, such as a TTL. A pointer's target is not read twice. The object is reused
 * for each message.
 */
export class NamePlaces {
  /**
   * By offset in the message, the number of the last message that had a label, a pointer or the end of a name there.
   * Also, the length of the rest of the name and the number of pointers in it.
   */
  readonly #marks = new Uint16Array(REACH);
  readonly #lengths = new Uint8Array(REACH);
  readonly #hops = new Uint8Array(REACH);
  #message = 0;
  #names = 0;
  #steps = 0;
  /** True if a pointer led to a position outside all names checked before it. */
  strayed = false;

  /** Begins a new message, forgetting names checked before. */
  begin(): void {
    this.strayed = false;
    this.#names = 0;
    this.#steps = 0;
    this.#message = (this.#message + 1) & 0xffff;
    if (this.#message > 0) return;
    this.#marks.fill(0);
    this.#message = 1;
  }

  /** Returns true if a checked name begins or continues at this offset. */
  knows(offset: number): boolean {
    return this.#marks[offset] === this.#message;
  }

  /** Length in bytes of the known name from this offset on, without pointers. */
  length(offset: number): number {
    return this.#lengths[offset]!;
  }

  /** Number of pointers that the known name follows from this offset on. */
  hops(offset: number): number {
    return this.#hops[offset]!;
  }

  /** Number of pointers followed by checked names, plus the number of labels read after strays. */
  get steps(): number {
    return this.#steps;
  }

  /**
   * Records a checked name.
   * @param at its position in `bytes`
   * @param length its length without pointers
   * @param hops number of pointers in it
   * @param steps the number of labels and pointers that were read, and that each later reader will have to read
   * @throws ReadError if the message's names require too many steps
   */
  note(
    bytes: Uint8Array,
    start: number,
    at: number,
    length: number,
    hops: number,
    steps: number,
  ): void {
    this.#steps += steps;
    if (this.#steps > HOPS_FREE + HOPS_PER_NAME * ++this.#names)
      throw new ReadError('the message’s names follow too many pointers', at - start);
    for (let offset = at - start; offset < REACH;) {
      this.#marks[offset] = this.#message;
      this.#lengths[offset] = length;
      this.#hops[offset] = hops;
      const size = bytes[start + offset]!;
      if (size === 0 || size >= 0xc0) return;
      offset += size + 1;
      length -= size + 1;
    }
  }
}

/**
 * Checks the possibly compressed name at `at`: its labels, its pointers and the limit of 255 bytes.
 * @param start start of the message, from which compression pointers are counted
 * @param places records the positions of the name and of its pointers' targets
 * @returns the end of the name in place
 * @throws ReadError
 */
export function checkName(
  bytes: Uint8Array,
  start: number,
  at: number,
  end: number,
  places: NamePlaces | null = null,
): number {
  const begin = at;
  let length = 1;
  let hops = 0;
  let labels = 0;
  let after = -1;
  // Start of the name's current segment. A pointer must lead to an earlier segment, which must also end before this
  // one.
  let segment = at;
  for (;;) {
    if (at >= end) return endsWithin(after, at - start);
    const size = bytes[at]!;
    if (size === 0) break;
    if (size < 0x40) {
      if (at + size >= end) return endsWithin(after, at - start);
      length += size + 1;
      if (length > NAME_MAX) throw new ReadError('a name is longer than 255 bytes', at - start);
      if (after >= 0) labels++;
      at += size + 1;
      continue;
    }
    if (size < 0xc0) {
      throw new ReadError(`a label has the unknown kind 0x${size.toString(16)}`, at - start);
    }
    if (at + 1 >= end) return endsWithin(after, at - start);
    const target = start + (((size & 0x3f) << 8) | bytes[at + 1]!);
    if (target >= segment) throw new ReadError('a name points forward or at itself', at - start);
    if (target < start + HEADER.SIZE) {
      throw new ReadError('a name points into the header', at - start);
    }
    if (after < 0) after = at + 2;
    hops++;
    const known = places !== null && places.knows(target - start);
    if (known) {
      length += places.length(target - start) - 1;
      hops += places.hops(target - start);
    } else if (places !== null) places.strayed = true;
    if (hops > HOPS_MAX) {
      throw new ReadError(`a name has more than ${HOPS_MAX} pointers`, at - start);
    }
    if (length > NAME_MAX) throw new ReadError('a name is longer than 255 bytes', at - start);
    if (known) break;
    end = segment;
    segment = target;
    at = target;
  }
  if (places !== null) places.note(bytes, start, begin, length, hops, hops + labels);
  return after < 0 ? at + 1 : after;
}

function endsWithin(after: number, offset: number): never {
  const reason =
    after < 0 ? 'the message ends in the middle of a name' : 'a name overlaps its pointer';
  throw new ReadError(reason, offset);
}
