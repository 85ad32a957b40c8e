/** Offsets of the TTLs in stored messages. */
import { hashBytes } from '../../base/hash.ts';
import { TYPE } from '../../wire/iana.ts';
import { Records } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';

/** Maximum number of different shared offset lists; when the table is full, it is emptied. */
const TABLE_MAX = 4096;

/**
 * Offsets of the TTLs in replies. Most replies of a cluster are similar (one address after a name of 40
 * bytes), so entries share their lists: a typed array for each entry would cost more than its message.
 */
export class OffsetTable {
  readonly #lists = new Map<number, Uint16Array[]>();
  readonly #records = new Records();
  /**
   * The offsets of the current reply: kept, since an array that is emptied gives its memory back.
   */
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

  /** @returns how many there are in `#found` */
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
