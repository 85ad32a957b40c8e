/** Access to JSON from outside, whose structure is not certain. */

/** An object as it was parsed. */
export type JsonObject = { readonly [key: string]: unknown };

const nothing: JsonObject = Object.freeze({});

/** The object at `key`; an empty one if it is missing or has another type. */
export function child(object: JsonObject, key: string): JsonObject {
  return asObject(object[key]);
}

/** The value if it is an object, else an empty one. */
export function asObject(value: unknown): JsonObject {
  return isObject(value) ? value : nothing;
}

/** True if the value is an object, that is neither a list nor null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The text at `key`; `''` if it is missing or has another type. */
export function text(object: JsonObject, key: string): string {
  const value = object[key];
  return typeof value === 'string' ? value : '';
}

/** The non-empty texts of the list at `key`. */
export function texts(object: JsonObject, key: string): string[] {
  return list(object, key).filter(
    (value): value is string => typeof value === 'string' && value !== '',
  );
}

/** The list at `key`; an empty one if it is missing or has another type. */
export function list(object: JsonObject, key: string): readonly unknown[] {
  const value = object[key];
  return Array.isArray(value) ? value : [];
}

/** The objects of the list at `key`. */
export function children(object: JsonObject, key: string): JsonObject[] {
  return list(object, key).filter(isObject);
}

/** The entries of the object at `key` whose values are texts: labels, annotations, selectors. */
export function textMap(object: JsonObject, key: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(child(object, key))) {
    if (typeof value === 'string') found[name] = value;
  }
  return found;
}
