/** Reads JSON from external sources, whose structure is not guaranteed. */

/** A parsed object. */
export type JsonObject = { readonly [key: string]: unknown };

const nothing: JsonObject = Object.freeze({});

/** Returns the object at `key`, or an empty one if it is missing or of another type. */
export function child(object: JsonObject, key: string): JsonObject {
  return asObject(object[key]);
}

/** Returns the value if it is an object, otherwise an empty one. */
export function asObject(value: unknown): JsonObject {
  return isObject(value) ? value : nothing;
}

/** Returns true for objects other than arrays and null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the string at `key`, or `''` if it is missing or of another type. */
export function text(object: JsonObject, key: string): string {
  const value = object[key];
  return typeof value === 'string' ? value : '';
}

/** Returns the non-empty strings in the list at `key`. */
export function texts(object: JsonObject, key: string): string[] {
  return list(object, key).filter(
    (value): value is string => typeof value === 'string' && value !== '',
  );
}

/** Returns the list at `key`, or an empty one if it is missing or of another type. */
export function list(object: JsonObject, key: string): readonly unknown[] {
  const value = object[key];
  return Array.isArray(value) ? value : [];
}

/** Returns the objects in the list at `key`. */
export function children(object: JsonObject, key: string): JsonObject[] {
  return list(object, key).filter(isObject);
}

/** Returns the string-valued entries of the object at `key`: labels, annotations, selectors. */
export function textMap(object: JsonObject, key: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(child(object, key))) {
    if (typeof value === 'string') found[name] = value;
  }
  return found;
}
