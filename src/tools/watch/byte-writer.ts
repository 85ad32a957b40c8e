/** Packs whole numbers from 0 to 2^53 into few bytes, in base 128 with the low digits first (LEB128). */

/** A number has at most this many digits. */
const DIGITS_MAX = 8;

export class ByteWriter {
  #bytes: Uint8Array = new Uint8Array(1024);
  length = 0;

  number(value: number): void {
    if (this.#bytes.length - this.length < DIGITS_MAX) this.#grow();
    let left = value;
    while (left >= 0x80) {
      this.#bytes[this.length++] = (left % 0x80) | 0x80;
      left = Math.floor(left / 0x80);
    }
    this.#bytes[this.length++] = left;
  }

  /** A view that is valid until the next write. */
  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  #grow(): void {
    const grown = new Uint8Array(2 * this.#bytes.length);
    grown.set(this.#bytes);
    this.#bytes = grown;
  }
}

export class ByteReader {
  readonly #bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, start = 0) {
    this.#bytes = bytes;
    this.at = start;
  }

  number(): number {
    let value = 0;
    let scale = 1;
    for (let digits = 0; digits < DIGITS_MAX; digits++) {
      const byte = this.#bytes[this.at++]!;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
      scale *= 0x80;
    }
    return value;
  }
}
