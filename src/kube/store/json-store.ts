/** API objects as they are, for those that want them whole: custom resources. Some hundreds, not hundreds of thousands. */
import { child, text, type JsonObject } from '../api/json-object.ts';
import type { ReflectedStore } from '../api/reflector.ts';
import { isBehind } from '../api/resource-version.ts';

/** An object that came, or went (`now` is null). */
export interface JsonChange {
  readonly before: JsonObject | null;
  readonly now: JsonObject | null;
}

/** The present state of one kind of API objects, by namespace and name. */
export class JsonStore implements ReflectedStore<JsonObject, JsonChange> {
  readonly #objects = new Map<string, JsonObject>();
  /** Those that the list which is under way has not brought yet; null: none is. */
  #unlisted: Set<string> | null = null;

  get size(): number {
    return this.#objects.size;
  }

  get bytes(): number {
    let characters = 0;
    for (const object of this.#objects.values()) characters += JSON.stringify(object).length;
    return characters;
  }

  get(namespace: string, name: string): JsonObject | null {
    return this.#objects.get(keyOf(namespace, name)) ?? null;
  }

  objects(): Iterable<JsonObject> {
    return this.#objects.values();
  }

  /** An event that is older than what is known, as one that was on its way while an answer to a change came, counts for nothing; a list does. */
  put(namespace: string, name: string, [now]: readonly JsonObject[], out: JsonChange[] = []): void {
    if (now === undefined) return;
    const key = keyOf(namespace, name);
    const before = this.#objects.get(key) ?? null;
    this.#unlisted?.delete(key);
    if (before !== null && this.#unlisted === null && isBehind(versionOf(now), versionOf(before)))
      return;
    this.#objects.set(key, now);
    out.push({ before, now });
  }

  remove(namespace: string, name: string, out: JsonChange[]): void {
    const key = keyOf(namespace, name);
    const before = this.#objects.get(key);
    if (before === undefined) return;
    this.#objects.delete(key);
    out.push({ before, now: null });
  }

  beginList(): void {
    this.#unlisted = new Set(this.#objects.keys());
  }

  endList(out: JsonChange[]): void {
    for (const key of this.#unlisted ?? []) {
      out.push({ before: this.#objects.get(key)!, now: null });
      this.#objects.delete(key);
    }
    this.#unlisted = null;
  }
}

/** An object without what only the API server's bookkeeping needs. */
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
