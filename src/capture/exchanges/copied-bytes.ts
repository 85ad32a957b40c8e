/** Copies of messages, many in one piece of memory: one piece for each would cost more than what it holds. */
import type { SeenExchange } from './seen-exchange.ts';

const SLAB = 64 * 1024;

/** Copies bytes into memory that is never written again. It goes when the last copy in it does. */
export class CopiedBytes {
  #slab = new Uint8Array(SLAB);
  #at = 0;
  readonly #slabs = new WeakSet([this.#slab.buffer]);

  copy(bytes: Uint8Array, start: number, end: number): Uint8Array {
    const length = end - start;
    if (length > SLAB / 16) return bytes.slice(start, end);
    if (this.#at + length > SLAB) {
      this.#slab = new Uint8Array(SLAB);
      this.#slabs.add(this.#slab.buffer);
      this.#at = 0;
    }
    const at = this.#at;
    const slab = this.#slab;
    for (let i = 0; i < length; i++) slab[at + i] = bytes[start + i]!;
    this.#at = at + length;
    return slab.subarray(at, at + length);
  }

  /** Moves the bytes of an exchange that outlives the others here: where they are, all their neighbours would stay with them. */
  keep(exchange: SeenExchange): void {
    const { query, reply } = exchange;
    if (!this.#slabs.has(query.buffer as ArrayBuffer))
      exchange.query = this.copy(query, 0, query.length);
    if (reply !== null && !this.#slabs.has(reply.buffer as ArrayBuffer))
      exchange.reply = this.copy(reply, 0, reply.length);
  }
}
