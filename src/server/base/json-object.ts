/** Reads JSON from external sources, which may have any structure. */

export type JsonObject = { readonly [key: string]: unknown };

const nothing: JsonObject = Object.freeze({});

/** Returns the object at `key`, or an empty object if it is missing or of another type. */
export function child(object: JsonObject, key: string): JsonObject {
  return asObject(object[key]);
}

/** Returns the value if it is an object, otherwise an empty object. */
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

/** Returns the list at `key`, or an empty list if it is missing or of another type. */
export function list(object: JsonObject, key: string): readonly unknown[] {
  const value = object[key];
  return Array.isArray(value) ? value : [];
}

/** Returns the objects in the list at `key`. */
export function children(object: JsonObject, key: string): JsonObject[] {
  return list(object, key).filter(isObject);
}

/**
 * Returns those entries of the object at `key` whose values are strings. Used for labels, annotations and selectors.
 */
export function textMap(object: JsonObject, key: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(child(object, key))) {
    if (typeof value === 'string') found[name] = value;
  }
  return found;
}
