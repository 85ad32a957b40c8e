/** A message that comes in pieces. */
import { MESSAGE_MAX } from '../wire/iana.ts';

/** The first size of the buffer: most queries fit. */
const FIRST_SIZE = 512;

/**
 * A DNS message that comes in pieces, put together in one buffer that grows with what has come. Pieces are not kept as they
 * are: of one byte each they would take a hundred times the memory.
 */
export class GatheredMessage {
  #bytes = nothing;
  #length = 0;
  readonly #max: number;

  /** @param max bytes that it may have: with what stands around a message, a few more */
  constructor(max: number = MESSAGE_MAX) {
    this.#max = max;
  }

  /** Bytes that have come. */
  get length(): number {
    return this.#length;
  }

  /** Bytes of memory that it takes. */
  get held(): number {
    return this.#bytes.length;
  }

  /** What has come, as a view that is valid until `add`. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Adds `from[start, end)`. @returns false: with it there would be more than it may have; it is not added */
  add(from: Uint8Array, start: number, end: number): boolean {
    const length = this.#length + end - start;
    if (length > this.#max) return false;
    if (length > this.#bytes.length) this.#grow(length);
    this.#bytes.set(from.subarray(start, end), this.#length);
    this.#length = length;
    return true;
  }

  #grow(least: number): void {
    const size = Math.max(FIRST_SIZE, least, Math.min(this.#max, 2 * this.#bytes.length));
    const larger = Buffer.allocUnsafeSlow(size);
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

const nothing: Buffer = Buffer.alloc(0);
