/** Copies records from one message to another without decoding them. */
import { copyBytes } from '../base/copy-bytes.ts';
import { HEADER, MESSAGE_MAX } from './iana.ts';
import { firstName, layoutOf } from './layout.ts';
import { endOfName } from './skip.ts';

/** The largest offset that a pointer can hold. */
const POINTER_MAX = 0x3fff;
/**
 * Size of the scratch space. Before an overflow is noticed, a record may exceed the 65 535 bytes of a full message by
 * its data and three uncompressed names.
 */
const SCRATCH_SIZE = 2 * MESSAGE_MAX + 1024;

/**
 * Copies records from one message to another byte for byte, adjusting compression pointers. It remembers the old offset
 * of each label it has copied. A pointer to a copied name becomes a pointer to the copy. A pointer to any other name is
 * replaced by the name itself the first time, and later pointers lead there. Each thread has its own mover. `out[0,
 * length)` is the new message until `begin` is called again.
 */
class RecordMover {
  readonly out: Uint8Array<ArrayBuffer> = new Uint8Array(SCRATCH_SIZE);
  length = 0;
  #from: Uint8Array = this.out;
  #start = 0;
  /** New offset by old offset, valid only if `#round` contains the current message's number. */
  readonly #moved = new Uint16Array(POINTER_MAX + 1);
  readonly #rounds = new Uint32Array(POINTER_MAX + 1);
  #round = 0;

  /** Begins a new message with a copy of the header (including counts) at `from[start]`. */
  begin(from: Uint8Array, start: number): void {
    this.over(from, start);
    this.length = 0;
    this.raw(from, start, start + HEADER.SIZE);
  }

  /** Continues with records from a different message. Pointers can no longer lead to names in the previous message. */
  over(from: Uint8Array, start: number): void {
    this.#from = from;
    this.#start = start;
    if (++this.#round === 0x1_0000_0000) {
      this.#rounds.fill(0);
      this.#round = 1;
    }
  }

  u16(value: number): void {
    this.out[this.length++] = value >> 8;
    this.out[this.length++] = value & 0xff;
  }

  u32(value: number): void {
    this.u16(value >>> 16);
    this.u16(value & 0xffff);
  }

  setU16(at: number, value: number): void {
    this.out[at] = value >> 8;
    this.out[at + 1] = value & 0xff;
  }

  /** Copies bytes that contain no names. */
  raw(from: Uint8Array, at: number, end: number): void {
    copyBytes(from, at, this.out, this.length, end - at);
    this.length += end - at;
  }

  /** Makes pointers to the old offset `from` lead to the new offset `to`. */
  map(from: number, to: number): void {
    if (from > POINTER_MAX || to > POINTER_MAX) return;
    this.#moved[from] = to;
    this.#rounds[from] = this.#round;
  }

  /** Writes a pointer to the question's name in the new message. */
  questionName(): void {
    this.out[this.length++] = 0xc0;
    this.out[this.length++] = HEADER.SIZE;
  }

  /** Writes the (checked) name at `at` again, as a pointer if it has been copied before. */
  again(at: number): void {
    const from = at - this.#start;
    if (from <= POINTER_MAX && this.#rounds[from] === this.#round)
      this.u16(0xc000 | this.#moved[from]!);
    else this.name(at);
  }

  /** Copies the (checked) name at `at`. */
  name(at: number): void {
    const from = this.#from;
    const { out } = this;
    for (;;) {
      const size = from[at]!;
      if (size >= 0xc0) {
        const target = ((size & 0x3f) << 8) | from[at + 1]!;
        if (this.#rounds[target] === this.#round) {
          this.u16(0xc000 | this.#moved[target]!);
          return;
        }
        at = this.#start + target;
        continue;
      }
      if (size === 0) {
        out[this.length++] = 0;
        return;
      }
      this.map(at - this.#start, this.length);
      for (const end = at + size + 1; at < end;) out[this.length++] = from[at++]!;
    }
  }

  /**
   * Copies a record without its owner: the fields at `at` (type, class, TTL and length) and the data.
   * @param ttl replacement TTL in seconds, or -1 to leave it unchanged
   */
  body(at: number, ttl: number): void {
    const from = this.#from;
    const type = (from[at]! << 8) | from[at + 1]!;
    const end = at + 10 + ((from[at + 8]! << 8) | from[at + 9]!);
    this.raw(from, at, at + 10);
    const data = this.length;
    if (ttl >= 0) {
      this.length = data - 6;
      this.u32(ttl);
      this.length = data;
    }
    const shape = layoutOf(type);
    if (shape === undefined || shape.names === 0 || at + 10 === end) {
      this.raw(from, at + 10, end);
      return;
    }
    let read = firstName(from, this.#start, at + 10, end, shape);
    this.raw(from, at + 10, read);
    for (let i = 0; i < shape.names; i++) {
      this.name(read);
      read = endOfName(from, read);
    }
    this.raw(from, read, end);
    this.setU16(data - 2, this.length - data);
  }
}

/** This thread's mover. */
export const mover: RecordMover = new RecordMover();
