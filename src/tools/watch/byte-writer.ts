/** Packs numbers and strings into few bytes, to be read back in the same order. */

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** Appends to a growing buffer. */
export class ByteWriter {
  #bytes: Uint8Array = new Uint8Array(1024);
  length = 0;

  /** Writes a whole number from 0 to 2^53 in base 128, low digits first (LEB128). */
  number(value: number): void {
    if (this.#bytes.length - this.length < 10) this.#grow(10);
    let left = value;
    while (left >= 0x80) {
      this.#bytes[this.length++] = (left % 0x80) | 0x80;
      left = Math.floor(left / 0x80);
    }
    this.#bytes[this.length++] = left;
  }

  text(value: string): void {
    const most = 3 * value.length;
    if (this.#bytes.length - this.length < most + 20) this.#grow(most + 20);
    const { written } = encoder.encodeInto(value, this.#bytes.subarray(this.length + 10));
    const from = this.length + 10;
    this.number(written);
    this.#bytes.copyWithin(this.length, from, from + written);
    this.length += written;
  }

  bytes(value: Uint8Array): void {
    this.number(value.length);
    if (this.#bytes.length - this.length < value.length) this.#grow(value.length);
    this.#bytes.set(value, this.length);
    this.length += value.length;
  }

  /** A view that is valid until the next write. */
  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  clear(): void {
    this.length = 0;
  }

  /** Clears the writer and frees its memory. */
  release(): void {
    this.length = 0;
    this.#bytes = new Uint8Array(0);
  }

  #grow(more: number): void {
    const grown = new Uint8Array(Math.max(2 * this.#bytes.length, this.length + more));
    grown.set(this.#bytes.subarray(0, this.length));
    this.#bytes = grown;
  }
}

/** Reads what a `ByteWriter` wrote. Past the end, it returns zeros and `isPast` is true. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at: number;
  isPast = false;

  constructor(bytes: Uint8Array, start = 0, end: number = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end;
  }

  get left(): number {
    return this.#end - this.#at;
  }

  number(): number {
    let value = 0;
    let scale = 1;
    for (let digits = 0; digits < 8; digits++) {
      if (this.#at >= this.#end) {
        this.isPast = true;
        return 0;
      }
      const byte = this.#bytes[this.#at++]!;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 0x80;
    }
    this.isPast = true;
    return 0;
  }

  text(): string {
    return decoder.decode(this.bytes());
  }

  /** A view of the underlying memory. */
  bytes(): Uint8Array {
    const length = this.number();
    if (length > this.#end - this.#at) {
      this.isPast = true;
      this.#at = this.#end;
      return new Uint8Array(0);
    }
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}
