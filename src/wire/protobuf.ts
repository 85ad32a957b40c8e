/** Messages in the encoding of Protocol Buffers. */
import { ReadError } from './reader.ts';

/** How a field's value is written (Protocol Buffers, "Encoding"). */
export const Wire: {
  readonly varint: 0;
  readonly fixed64: 1;
  readonly bytes: 2;
  readonly fixed32: 5;
} = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** Goes over the fields of one message: `next` steps, the fields tell about the present one. */
export class ProtobufReader {
  field = 0;
  wire = 0;
  /** The value of a number. 64-bit ones beyond 2^53 lose their last digits. */
  number = 0;
  /** The value of bytes: a view. */
  bytes: Uint8Array = new Uint8Array(0);
  readonly #from: Uint8Array;
  #at = 0;

  constructor(from: Uint8Array) {
    this.#from = from;
  }

  /** Steps to the next field; false after the last one. @throws ReadError */
  next(): boolean {
    const from = this.#from;
    if (this.#at >= from.length) return false;
    const tag = this.#varint();
    this.field = Math.floor(tag / 8);
    this.wire = tag & 7;
    if (this.field === 0) this.#fail('there is no field 0');
    if (this.wire === Wire.varint) this.number = this.#varint();
    else if (this.wire === Wire.bytes) {
      const length = this.#varint();
      this.bytes = this.#take(length);
    } else if (this.wire === Wire.fixed32) this.number = littleEndian(this.#take(4));
    else if (this.wire === Wire.fixed64) this.number = littleEndian(this.#take(8));
    else this.#fail(`fields of kind ${this.wire} are not known`);
    return true;
  }

  #varint(): number {
    let value = 0;
    for (let scale = 1, size = 1; size <= 10; size++, scale *= 128) {
      const byte = this.#from[this.#at++];
      if (byte === undefined) this.#fail('a number runs over the end of the message');
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    return this.#fail('a number has more than 64 bits');
  }

  #take(length: number): Uint8Array {
    const end = this.#at + length;
    if (end > this.#from.length) this.#fail('a field runs over the end of the message');
    const bytes = this.#from.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }

  #fail(text: string): never {
    throw new ReadError(text, this.#at);
  }
}

function littleEndian(bytes: Uint8Array): number {
  return bytes.reduceRight((value, byte) => value * 256 + byte, 0);
}
