import { findTtls } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';

/** Different lists of offsets that are shared; beyond it the table begins anew. */
const TABLE_MAX = 4096;

/**
 * Where TTLs stand in replies. Most replies of a cluster look alike (one address after a name of 40 bytes), so entries
 * share their lists: a typed array of its own would cost each entry more than its message.
 */
export class OffsetTable {
  readonly #lists = new Map<number, Uint16Array[]>();
  readonly #found: number[] = [];
  #size = 0;

  of(reply: Reply): Uint16Array {
    const found = this.#found;
    findTtls(found, reply.bytes, reply.start, reply.end);
    let hash = found.length;
    for (let i = 0; i < found.length; i++) hash = (Math.imul(hash, 31) + found[i]!) & 0x3fffffff;
    const alike = this.#lists.get(hash);
    const count = alike === undefined ? 0 : alike.length;
    for (let i = 0; i < count; i++) if (same(alike![i]!, found)) return alike![i]!;
    if (this.#size++ === TABLE_MAX) {
      this.#lists.clear();
      this.#size = 1;
    }
    const offsets = Uint16Array.from(found);
    if (alike === undefined || this.#size === 1) this.#lists.set(hash, [offsets]);
    else alike.push(offsets);
    return offsets;
  }
}

function same(a: Uint16Array, b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
