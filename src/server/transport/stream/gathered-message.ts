/** Assembles a message that arrives in pieces. */
import { MESSAGE_MAX } from '../../wire/iana.ts';

/** Initial buffer size, enough for most queries. */
const FIRST_SIZE = 512;

/**
 * A DNS message that arrives in pieces, collected in a single buffer that grows with the bytes received. If each piece
 * were a single byte, a list of chunks would take a hundred times the memory.
 */
export class GatheredMessage {
  #bytes = nothing;
  #length = 0;
  readonly #max: number;

  /** @param max maximum size in bytes, which is larger than a message if the protocol adds framing */
  constructor(max: number = MESSAGE_MAX) {
    this.#max = max;
  }

  get length(): number {
    return this.#length;
  }

  get held(): number {
    return this.#bytes.length;
  }

  /** The bytes received so far, as a view that is valid until `add` is called. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /**
   * Adds `from[start, end)`.
   * @returns false, without adding anything, if the message would exceed its maximum
   */
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
