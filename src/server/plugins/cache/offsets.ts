/** Offsets of the TTLs in stored messages. */
import { hashBytes } from '../../base/hash.ts';
import { TYPE } from '../../wire/iana.ts';
import { Records } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';

/** Maximum number of distinct offset lists that are shared; when the table is full, it is emptied. */
const TABLE_MAX = 4096;

/**
 * Stores the TTL offsets of replies. Most replies in a cluster look alike (one address after a 40-byte name), so
 * entries share offset lists. A typed array for each entry would use more memory than the message.
 */
export class OffsetTable {
  readonly #lists = new Map<number, Uint16Array[]>();
  readonly #records = new Records();
  /** The current reply's offsets. The buffer is reused, because emptying an array releases its memory. */
  #found = new Uint16Array(64);
  #foundBytes = new Uint8Array(this.#found.buffer);
  #size = 0;

  of(reply: Reply): Uint16Array {
    const count = this.#find(reply);
    const found = this.#found;
    const hash = hashBytes(this.#foundBytes, 0, 2 * count) & 0x3fffffff;
    const alike = this.#lists.get(hash);
    const lists = alike === undefined ? 0 : alike.length;
    for (let i = 0; i < lists; i++) if (same(alike![i]!, found, count)) return alike![i]!;
    if (this.#size++ === TABLE_MAX) {
      this.#lists.clear();
      this.#size = 1;
    }
    const offsets = found.slice(0, count);
    if (alike === undefined || this.#size === 1) this.#lists.set(hash, [offsets]);
    else alike.push(offsets);
    return offsets;
  }

  /** @returns the number of offsets in `#found` */
  #find({ bytes, start, end }: Reply): number {
    const records = this.#records;
    let count = 0;
    for (records.over(bytes, start, end); records.next();) {
      if (records.type === TYPE.OPT) continue;
      if (count === this.#found.length) {
        const larger = new Uint16Array(2 * count);
        larger.set(this.#found);
        this.#found = larger;
        this.#foundBytes = new Uint8Array(larger.buffer);
      }
      this.#found[count++] = records.ttlAt - start;
    }
    return count;
  }
}

function same(a: Uint16Array, b: Uint16Array, count: number): boolean {
  if (a.length !== count) return false;
  for (let i = 0; i < count; i++) if (a[i] !== b[i]) return false;
  return true;
}
