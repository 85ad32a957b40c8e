/** Limits the memory that a source's objects may use, whatever the API server sends. */
import type { MemoryTerms } from '../../runtime/memory-share.ts';
import type { GoneRecord, ObjectRecord } from './object-record.ts';
import type { ObjectStore } from './object-store.ts';
import type { ReflectedStore } from './reflected-store.ts';
import type { ObjectKind } from './objects.ts';

const MIB = 1024 * 1024;

/**
 * Memory for objects, most of which is used by the workers' indexes. This was measured. Without a memory limit on the
 * process, there is room for a million objects.
 */
export const OBJECT_MEMORY: MemoryTerms = { times: 8, least: 8 * MIB, unlimited: 64 * MIB };

/**
 * Extra room in which known objects may still grow when there is none for new ones. It is this fraction of the limit,
 * but at least this many bytes.
 */
const SLACK = 1 / 8;
const SLACK_BYTES = 1024 * 1024;

/**
 * Stores that share a limit. At the limit, unknown objects are omitted, while known ones are still updated unless they
 * grow considerably. Answers therefore stay correct, and no served name disappears. Omitted objects are added with
 * their next change or the next list, if there is room by then.
 */
export class BoundedStores<R extends ObjectRecord> {
  readonly #limit: number;
  readonly #leftOut: (kind: ObjectKind) => void;
  readonly #stores: ObjectStore<R>[] = [];

  /**
   * @param limit in bytes; Infinity for no limit
   * @param leftOut called for each omitted object, and for each change to one
   */
  constructor(limit: number, leftOut: (kind: ObjectKind) => void) {
    this.#limit = limit;
    this.#leftOut = leftOut;
  }

  /** Bytes in all stores together. */
  get bytes(): number {
    let total = 0;
    for (const store of this.#stores) total += store.bytes;
    return total;
  }

  /** Wraps a store so that it stays within the limit. */
  bound(store: ObjectStore<R>): ReflectedStore<R, R | GoneRecord> {
    this.#stores.push(store);
    return {
      get size() {
        return store.size;
      },
      get bytes() {
        return store.bytes;
      },
      put: (namespace, name, objects, out) => {
        // An empty list of objects removes the object, and there is always room for that.
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
