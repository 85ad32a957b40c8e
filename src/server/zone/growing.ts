import { copyBytes } from '../base/copy-bytes.ts';

/** A growing array of 32-bit numbers. */
export class GrowingNumbers {
  #items = new Uint32Array(256);
  length = 0;

  /** @returns its index */
  push(item: number): number {
    if (this.length === this.#items.length) {
      const wider = new Uint32Array(Math.ceil(1.5 * this.length));
      wider.set(this.#items);
      this.#items = wider;
    }
    this.#items[this.length] = item;
    return this.length++;
  }

  /** The written part, as a view. */
  get written(): Uint32Array {
    return this.#items.subarray(0, this.length);
  }

  at(index: number): number {
    return this.#items[index]!;
  }

  set(index: number, item: number): void {
    this.#items[index] = item;
  }
}

export class GrowingBytes {
  bytes: Uint8Array;
  length = 0;

  /** @param room initial capacity in bytes, or the initial buffer itself */
  constructor(room: number | Uint8Array = 1024) {
    this.bytes = typeof room === 'number' ? new Uint8Array(room) : room;
  }

  /** The written part, as a view. */
  get written(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  /** Moves to a buffer with enough room. */
  move(to: Uint8Array): void {
    to.set(this.bytes.subarray(0, this.length));
    this.bytes = to;
  }

  /** @returns the position of the added bytes */
  push(added: Uint8Array): number {
    return this.copy(added, 0, added.length);
  }

  /** Appends part of some bytes without creating a view. */
  copy(from: Uint8Array, at: number, size: number): number {
    const { length } = this;
    this.#room(size);
    copyBytes(from, at, this.bytes, length, size);
    this.length = length + size;
    return length;
  }

  u8(value: number): void {
    this.#room(1);
    this.bytes[this.length++] = value;
  }

  u16(value: number): void {
    this.#room(2);
    this.bytes[this.length++] = value >>> 8;
    this.bytes[this.length++] = value & 0xff;
  }

  u32(value: number): void {
    this.u16(value >>> 16);
    this.u16(value & 0xffff);
  }

  /** Writes seven bits per byte, lowest first. A top bit that is set means that more follow. */
  varint(value: number): void {
    this.#room(5);
    for (; value >= 0x80; value >>>= 7) this.bytes[this.length++] = (value & 0x7f) | 0x80;
    this.bytes[this.length++] = value;
  }

  readU16(at: number): number {
    return (this.bytes[at]! << 8) | this.bytes[at + 1]!;
  }

  readU32(at: number): number {
    return ((this.readU16(at) << 16) | this.readU16(at + 2)) >>> 0;
  }

  /** Returns true if the `size` bytes at `at` equal the start of the other buffer. */
  equals(at: number, other: Uint8Array, size: number): boolean {
    for (let i = 0; i < size; i++) if (this.bytes[at + i] !== other[i]) return false;
    return true;
  }

  #room(size: number): void {
    if (this.length + size <= this.bytes.length) return;
    this.move(new Uint8Array(Math.max(Math.ceil(1.5 * this.bytes.length), this.length + size)));
  }
}
