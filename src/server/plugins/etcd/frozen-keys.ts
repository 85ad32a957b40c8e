/** A snapshot of one zone's keys. */
import type { RecordSource, KeyStretch } from './lookup.ts';
import type { Contents } from './replica.ts';

/** A fixed copy of the keys in byte order, for a transfer that continues while etcd changes. */
export class FrozenKeys implements RecordSource {
  readonly keys: readonly string[];
  readonly #values: readonly string[];
  readonly #leases: ReadonlyMap<string, number>;

  /** @param path the zone's path */
  constructor({ table, leases }: Contents, path: string) {
    const own = table.range(path, `${path}\0`, 1);
    const below = table.range(`${path}/`, `${path}0`, Infinity);
    this.keys = [...cut(own.keys, own), ...cut(below.keys, below)];
    this.#values = [...cut(own.values, own), ...cut(below.values, below)];
    this.#leases = leases;
  }

  below(path: string): KeyStretch {
    // `0` follows `/` in byte order.
    return this.#stretch(this.#place(`${path}/`), this.#place(`${path}0`));
  }

  at(path: string): KeyStretch {
    const at = this.#place(path);
    return this.#stretch(at, this.keys[at] === path ? at + 1 : at);
  }

  leaseEnd(id: string): number {
    return this.#leases.get(id) ?? 0;
  }

  #stretch(from: number, to: number): KeyStretch {
    return { keys: this.keys, values: this.#values, from, to };
  }

  #place(key: string): number {
    let low = 0;
    let high = this.keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.keys[middle]! < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function cut(list: readonly string[], { from, to }: KeyStretch): readonly string[] {
  return list.slice(from, to);
}
