/** What the objects of a source may take together, whatever its other end sends. */
import type { MemoryTerms } from '../../base/memory-share.ts';
import type { ReflectedStore } from './reflected-store.ts';
import type { ObjectKind } from './objects.ts';

const MIB = 1024 * 1024;

/**
 * What objects take: most of it are indexes of the workers. Measured. Where nothing bounds the process there is room for a million.
 */
export const OBJECT_MEMORY: MemoryTerms = { times: 8, least: 8 * MIB, unlimited: 64 * MIB };

/** A store that can say that an object is there without taking what it is by now. */
export interface MarkingStore<T, C> extends ReflectedStore<T, C> {
  readonly kind: ObjectKind;
  /** False: the object is not known. */
  mark(namespace: string, name: string): boolean;
}

/** What known objects may grow by when there is no room for new ones, as a part of the limit, and the least of it in bytes. */
const SLACK = 1 / 8;
const SLACK_BYTES = 1024 * 1024;

/**
 * Stores that share one limit. When it is reached, objects that are not known are left out, and those that are known go on
 * changing, as long as they do not grow much: what is answered is right, and nothing that was answered is removed. What was left
 * out comes in with its next change or the next list that finds room.
 */
export class BoundedStores<T, C> {
  readonly #limit: number;
  readonly #leftOut: (kind: ObjectKind) => void;
  readonly #stores: MarkingStore<T, C>[] = [];

  /** @param limit bytes; Infinity: none @param leftOut told of each object, and each change of one, that was not taken */
  constructor(limit: number, leftOut: (kind: ObjectKind) => void) {
    this.#limit = limit;
    this.#leftOut = leftOut;
  }

  /** Bytes that all of them take. */
  get bytes(): number {
    let total = 0;
    for (const store of this.#stores) total += store.bytes;
    return total;
  }

  /** The same store, within the limit. */
  bound(store: MarkingStore<T, C>): ReflectedStore<T, C> {
    this.#stores.push(store);
    return {
      get size() {
        return store.size;
      },
      get bytes() {
        return store.bytes;
      },
      put: (namespace, name, objects, out) => {
        // Nothing to keep: the object is to be forgotten.
        if (objects.length === 0 || this.#hasRoom(() => store.mark(namespace, name)))
          store.put(namespace, name, objects, out);
        else this.#leftOut(store.kind);
      },
      remove: (namespace, name, out) => store.remove(namespace, name, out),
      beginList: () => store.beginList(),
      endList: (out) => store.endList(out),
    };
  }

  #hasRoom(known: () => boolean): boolean {
    const { bytes } = this;
    if (bytes < this.#limit) return true;
    return known() && bytes < this.#limit + Math.max(SLACK * this.#limit, SLACK_BYTES);
  }
}
