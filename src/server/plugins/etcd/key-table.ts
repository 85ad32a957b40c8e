/** Keys in byte order, so that all keys below a name are contiguous. */
import type { KeyStretch } from './lookup.ts';

/** The keys and values in one part of the table, in order; never empty. */
interface KeyChunk {
  keys: string[];
  values: string[];
}

/** A key's position. `at` is the end of the chunk if the key would come after everything in it. */
interface KeyPlace {
  readonly chunk: number;
  readonly at: number;
}

/** Maximum number of keys in a chunk. An insertion moves no more keys than this, even in a large table. */
const CHUNK_MAX = 1024;

/**
 * Keys in byte order with their values, in chunks of limited size. A map cannot find all keys with a prefix, and
 * inserting into a single array of a million keys takes milliseconds. Keys are byte strings (latin1).
 */
export class KeyTable {
  readonly #chunkMax: number;
  #chunks: KeyChunk[] = [];
  #size = 0;

  /** @param chunkMax maximum number of keys per chunk, at least 2; tests use small chunks */
  constructor(chunkMax: number = CHUNK_MAX) {
    this.#chunkMax = chunkMax;
  }

  /** Returns a table that only has the keys in these ranges, which are in order. It must not be changed. */
  static of(...ranges: readonly KeyStretch[]): KeyTable {
    const table = new KeyTable();
    const keys = ranges.flatMap((one) => one.keys.slice(one.from, one.to));
    const values = ranges.flatMap((one) => one.values.slice(one.from, one.to));
    table.#size = keys.length;
    if (keys.length > 0) table.#chunks.push({ keys, values });
    return table;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns a key's value, or null. */
  get(key: string): string | null {
    const { chunk, at } = this.#place(key);
    const found = this.#chunks[chunk];
    return found?.keys[at] === key ? found.values[at]! : null;
  }

  /** Returns the key's stored string, so that callers need no second copy. */
  own(key: string): string {
    const { chunk, at } = this.#place(key);
    const kept = this.#chunks[chunk]?.keys[at];
    return kept === key ? kept : key;
  }

  /** @returns the previous value, or null */
  set(key: string, value: string): string | null {
    const { chunk, at } = this.#place(key);
    const found = this.#chunks[chunk];
    if (found?.keys[at] === key) {
      const before = found.values[at]!;
      found.values[at] = value;
      return before;
    }
    this.#size++;
    if (found === undefined) this.#chunks.push({ keys: [key], values: [value] });
    else if (found.keys.length < this.#chunkMax) insert(found, at, key, value);
    else this.#insertIntoFull(chunk, at, key, value);
    return null;
  }

  /** @returns the removed value, or null */
  delete(key: string): string | null {
    const { chunk, at } = this.#place(key);
    const found = this.#chunks[chunk];
    if (found?.keys[at] !== key) return null;
    this.#size--;
    found.keys.splice(at, 1);
    const before = found.values.splice(at, 1)[0]!;
    if (found.keys.length === 0) this.#chunks.splice(chunk, 1);
    else if (found.keys.length < this.#chunkMax / 4) this.#join(chunk);
    return before;
  }

  /**
   * Removes every key that is missing from this sorted list.
   * @returns the removed keys
   */
  retain(sorted: readonly string[]): (readonly [key: string, value: string])[] {
    const removed: (readonly [string, string])[] = [];
    let at = 0;
    for (const { keys, values } of this.#chunks) {
      let kept = 0;
      for (const [i, key] of keys.entries()) {
        while (at < sorted.length && sorted[at]! < key) at++;
        if (sorted[at] === key) {
          keys[kept] = key;
          values[kept++] = values[i]!;
        } else removed.push([key, values[i]!]);
      }
      keys.length = kept;
      values.length = kept;
    }
    this.#chunks = this.#chunks.filter(({ keys }) => keys.length > 0);
    this.#size -= removed.length;
    return removed;
  }

  /**
   * Returns the keys from `from` (inclusive) to `to` (exclusive), which stay valid until the next change.
   * @param most if there are more keys than this, only some are returned, but more than this number
   */
  range(from: string, to: string, most: number): KeyStretch {
    const first = this.#place(from);
    const end = this.#place(to);
    const chunk = this.#chunks[first.chunk];
    if (chunk === undefined) return { keys: [], values: [], from: 0, to: 0 };
    if (first.chunk === end.chunk) return { ...chunk, from: first.at, to: end.at };
    const keys = chunk.keys.slice(first.at);
    const values = chunk.values.slice(first.at);
    for (let i = first.chunk + 1; i <= end.chunk && keys.length <= most; i++) {
      const next = this.#chunks[i]!;
      const until = i === end.chunk ? end.at : next.keys.length;
      keys.push(...next.keys.slice(0, until));
      values.push(...next.values.slice(0, until));
    }
    return { keys, values, from: 0, to: keys.length };
  }

  /** Yields all keys in order. The table may change in the meantime, because the search resumes after the last key. */
  *entries(): Generator<readonly [key: string, value: string]> {
    let last: string | null = null;
    let chunk = 0;
    for (let at = 0; ; at++) {
      // Keys that were added or removed in the meantime have shifted the position.
      if (last !== null && this.#chunks[chunk]?.keys[at - 1] !== last)
        ({ chunk, at } = this.#behind(last));
      if (at === this.#chunks[chunk]?.keys.length) {
        chunk++;
        at = 0;
      }
      const found = this.#chunks[chunk];
      if (found === undefined) return;
      last = found.keys[at]!;
      yield [last, found.values[at]!];
    }
  }

  #behind(key: string): KeyPlace {
    const { chunk, at } = this.#place(key);
    return { chunk, at: this.#chunks[chunk]?.keys[at] === key ? at + 1 : at };
  }

  /**
   * Returns where the key is, or where to insert it. This is in the last chunk whose first key is not greater than it.
   */
  #place(key: string): KeyPlace {
    const chunks = this.#chunks;
    let low = 0;
    let high = chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (chunks[middle]!.keys[0]! <= key) low = middle + 1;
      else high = middle;
    }
    const chunk = Math.max(0, low - 1);
    return { chunk, at: lowerBound(chunks[chunk]?.keys ?? [], key) };
  }

  /** Sorted input fills one chunk after another. Anywhere else, a full chunk is split in half. */
  #insertIntoFull(index: number, at: number, key: string, value: string): void {
    const chunk = this.#chunks[index]!;
    const { keys, values } = chunk;
    if (index === this.#chunks.length - 1 && at === keys.length) {
      this.#chunks.push({ keys: [key], values: [value] });
      return;
    }
    const half = keys.length >>> 1;
    const second = { keys: keys.slice(half), values: values.slice(half) };
    chunk.keys = keys.slice(0, half);
    chunk.values = values.slice(0, half);
    this.#chunks.splice(index + 1, 0, second);
    if (at <= half) insert(chunk, at, key, value);
    else insert(second, at - half, key, value);
  }

  /** Merges a small chunk with the next one if that is small too. */
  #join(index: number): void {
    const chunk = this.#chunks[index]!;
    const next = this.#chunks[index + 1];
    if (next === undefined || chunk.keys.length + next.keys.length > this.#chunkMax / 2) return;
    chunk.keys.push(...next.keys);
    chunk.values.push(...next.values);
    this.#chunks.splice(index + 1, 1);
  }
}

function insert({ keys, values }: KeyChunk, at: number, key: string, value: string): void {
  keys.splice(at, 0, key);
  values.splice(at, 0, value);
}

/** Returns the index of the first key that is not less than this one. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keys[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
