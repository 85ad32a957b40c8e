/** Limits the memory of the objects of a source, whatever the API server sends. */
import type { MemoryTerms } from '../../runtime/memory-share.ts';
import type { ReflectedStore } from './reflected-store.ts';
import type { ObjectKind } from './objects.ts';

const MIB = 1024 * 1024;

/**
 * Memory of objects, most of which are the workers' indexes; measured. Without a memory limit of
 * the process there is room for a million objects.
 */
export const OBJECT_MEMORY: MemoryTerms = { times: 8, least: 8 * MIB, unlimited: 64 * MIB };

/** A store that can learn that an object still exists, without its current state. */
export interface MarkingStore<T, C> extends ReflectedStore<T, C> {
  readonly kind: ObjectKind;
  /** False: the object is not known. */
  mark(namespace: string, name: string): boolean;
}

/**
 * Without room for new objects, known ones may still grow by this part of the limit, and at least
 * by this number of bytes.
 */
const SLACK = 1 / 8;
const SLACK_BYTES = 1024 * 1024;

/**
 * Stores that share one limit. At the limit, unknown objects are omitted, while known ones are
 * still updated if they do not grow much. So answers stay correct, and no answered name disappears.
 * Omitted objects come in with their next change or the next list, if there is room then.
 */
export class BoundedStores<T, C> {
  readonly #limit: number;
  readonly #leftOut: (kind: ObjectKind) => void;
  readonly #stores: MarkingStore<T, C>[] = [];

  /**
   * @param limit bytes; Infinity: none @param leftOut called for each omitted object, and each
   * change of one
   */
  constructor(limit: number, leftOut: (kind: ObjectKind) => void) {
    this.#limit = limit;
    this.#leftOut = leftOut;
  }

  /** Bytes of all stores together. */
  get bytes(): number {
    let total = 0;
    for (const store of this.#stores) total += store.bytes;
    return total;
  }

  /** Wraps a store so that it keeps within the limit. */
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
        // An empty list of objects removes the object, for which there is always room.
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
