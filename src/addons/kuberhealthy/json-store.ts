/**
 * Stores complete API objects for callers that need all fields, such as those that read custom resources. Meant for
 * hundreds of objects, not for hundreds of thousands.
 */
import { child, text, type JsonObject } from '../../server/base/json-object.ts';
import type { ReflectedStore } from '../../server/kube/store/reflected-store.ts';
import { isBehind } from '../../server/kube/store/resource-version.ts';
import { weightOf, type ObjectRoom } from './object-room.ts';

/** An object was added, changed or removed (`now` is null). */
export interface JsonChange {
  readonly before: JsonObject | null;
  readonly now: JsonObject | null;
}

interface HeldObject {
  readonly object: JsonObject;
  readonly namespace: string;
  readonly weight: number;
}

/** Called for a new object that is omitted because there is no room. */
export type OnLeftOut = (
  object: { readonly namespace: string; readonly name: string },
  why: 'object' | 'namespace' | 'all',
) => void;

/** Maximum number of omitted objects that are stored by name. Beyond that, they are only counted. */
const LEFT_OUT_MAX = 1000;

/** The current state of one kind of API object, by namespace and name, as far as there is room. */
export class JsonStore implements ReflectedStore<JsonObject, JsonChange> {
  readonly #room: ObjectRoom;
  readonly #tell: OnLeftOut;
  readonly #objects = new Map<string, HeldObject>();
  readonly #leftOut = new Set<string>();
  /** Objects that the list in progress has not included yet, or null if no list is in progress. */
  #unlisted: Set<string> | null = null;

  constructor(room: ObjectRoom, tell: OnLeftOut) {
    this.#room = room;
    this.#tell = tell;
  }

  get size(): number {
    return this.#objects.size;
  }

  get bytes(): number {
    let bytes = 0;
    for (const { weight } of this.#objects.values()) bytes += weight;
    return bytes;
  }

  get leftOut(): number {
    return this.#leftOut.size;
  }

  get(namespace: string, name: string): JsonObject | null {
    return this.#objects.get(keyOf(namespace, name))?.object ?? null;
  }

  *objects(): Generator<JsonObject> {
    for (const { object } of this.#objects.values()) yield object;
  }

  /**
   * Stores an object. An event older than the stored state is ignored, because it was in transit while the reply to a
   * change arrived. This does not apply to lists.
   */
  put(namespace: string, name: string, [now]: readonly JsonObject[], out: JsonChange[] = []): void {
    if (now === undefined) return;
    const key = keyOf(namespace, name);
    const before = this.#objects.get(key)?.object ?? null;
    this.#unlisted?.delete(key);
    if (before !== null && this.#unlisted === null && isBehind(versionOf(now), versionOf(before)))
      return;
    this.#drop(key);
    const weight = weightOf(now);
    const why = this.#room.take(namespace, weight);
    if (why === null) {
      this.#objects.set(key, { object: now, namespace, weight });
      out.push({ before, now });
      return;
    }
    if (this.#leftOut.size <= LEFT_OUT_MAX) this.#leftOut.add(key);
    this.#tell({ namespace, name }, why);
    if (before !== null) out.push({ before, now: null });
  }

  remove(namespace: string, name: string, out: JsonChange[]): void {
    this.#removeKey(keyOf(namespace, name), out);
  }

  beginList(): void {
    this.#unlisted = new Set([...this.#objects.keys(), ...this.#leftOut]);
  }

  endList(out: JsonChange[]): void {
    for (const key of this.#unlisted ?? []) this.#removeKey(key, out);
    this.#unlisted = null;
  }

  #removeKey(key: string, out: JsonChange[]): void {
    const before = this.#objects.get(key)?.object;
    this.#drop(key);
    if (before !== undefined) out.push({ before, now: null });
  }

  #drop(key: string): void {
    this.#leftOut.delete(key);
    const held = this.#objects.get(key);
    if (held === undefined) return;
    this.#objects.delete(key);
    this.#room.give(held.namespace, held.weight);
  }
}

/** Returns an object without its managed fields, which only the API server needs. */
export function withoutManagedFields(object: JsonObject): JsonObject {
  const { managedFields: _, ...metadata } = child(object, 'metadata');
  return { ...object, metadata };
}

function keyOf(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

function versionOf(object: JsonObject): string {
  return text(child(object, 'metadata'), 'resourceVersion');
}
