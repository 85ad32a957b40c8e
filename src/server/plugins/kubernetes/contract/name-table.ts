/** A table from labels to namespaces and services. */
import { hashBytes } from '../../../base/hash.ts';
import { LOWER } from '../../../wire/name.ts';

export interface Named {
  readonly name: string;
  readonly parent: number;
}

const SIZE_MIN = 16;
/** Buffer for the name that is being hashed; object names have up to 253 characters. */
const label = new Uint8Array(256);

/**
 * Finds objects by the bytes of a DNS label in a query without allocating a string. It is an open-addressing hash table
 * next to an array of the objects. Names are compared without regard to ASCII case. `parent` (for services, the
 * namespace number) distinguishes objects with equal labels.
 */
export class NameTable<T extends Named> {
  #hashes = new Int32Array(SIZE_MIN);
  #things: (T | null)[] = Array<T | null>(SIZE_MIN).fill(null);
  #mask = SIZE_MIN - 1;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Finds the object named by the folded label `bytes[at, at + length)`. */
  find(bytes: Uint8Array, at: number, length: number, parent: number): T | null {
    const hash = hashBytes(bytes, at, at + length, parent);
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const thing = this.#things[slot]!;
      if (thing === null) return null;
      if (this.#hashes[slot] !== hash || thing.parent !== parent) continue;
      const { name } = thing;
      if (name.length !== length) continue;
      let same = 0;
      while (same < length && fold(name, same) === bytes[at + same]) same++;
      if (same === length) return thing;
    }
  }

  /** Finds an object by text. */
  get(name: string, parent: number): T | null {
    const hash = this.#hashOf(name, parent);
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const thing = this.#things[slot]!;
      if (thing === null) return null;
      if (this.#hashes[slot] === hash && thing.parent === parent && thing.name === name)
        return thing;
    }
  }

  /** Adds an object that is not yet in the table. */
  add(thing: T): void {
    if (this.#size + 1 > 0.6 * (this.#mask + 1)) this.#resize(2 * (this.#mask + 1));
    this.#insert(thing, this.#hashOf(thing.name, thing.parent));
    this.#size++;
  }

  remove(thing: T): void {
    const mask = this.#mask;
    const things = this.#things;
    let hole = this.#hashOf(thing.name, thing.parent) & mask;
    while (things[hole] !== thing) {
      if (things[hole] === null) return;
      hole = (hole + 1) & mask;
    }
    this.#size--;
    for (let at = (hole + 1) & mask; things[at] !== null; at = (at + 1) & mask) {
      const home = this.#hashes[at]! & mask;
      if (((at - home) & mask) < ((at - hole) & mask)) continue;
      things[hole] = things[at]!;
      this.#hashes[hole] = this.#hashes[at]!;
      hole = at;
    }
    things[hole] = null;
  }

  *values(): Generator<T> {
    for (const thing of this.#things) if (thing !== null) yield thing;
  }

  /** Hashes the parent's number and the folded label. */
  #hashOf(name: string, parent: number): number {
    const length = Math.min(name.length, label.length);
    for (let i = 0; i < length; i++) label[i] = fold(name, i);
    return hashBytes(label, 0, length, parent);
  }

  #insert(thing: T, hash: number): void {
    let slot = hash & this.#mask;
    while (this.#things[slot] !== null) slot = (slot + 1) & this.#mask;
    this.#things[slot] = thing;
    this.#hashes[slot] = hash;
  }

  #resize(size: number): void {
    const things = this.#things;
    const hashes = this.#hashes;
    this.#things = Array<T | null>(size).fill(null);
    this.#hashes = new Int32Array(size);
    this.#mask = size - 1;
    things.forEach((thing, slot) => {
      if (thing !== null) this.#insert(thing, hashes[slot]!);
    });
  }
}

function fold(name: string, at: number): number {
  const code = name.charCodeAt(at);
  return code < 256 ? LOWER[code]! : code;
}
