/** Validates JSON fields sent by other programs. */
import { isObject, type JsonObject } from '../../server/base/json-object.ts';

/** A field's kind. With `?`, it may also be null. */
export type FieldKind = 'string' | 'number' | 'boolean' | 'strings' | 'string?' | 'number?';

/** True if every field is present and has the right kind. */
export function hasFields(object: JsonObject, kinds: Readonly<Record<string, FieldKind>>): boolean {
  return Object.entries(kinds).every(([key, kind]) => isKind(object[key], kind));
}

export function isListOf(value: unknown, fits: (one: JsonObject) => boolean): boolean {
  return Array.isArray(value) && value.every((one) => isObject(one) && fits(one));
}

function isKind(value: unknown, kind: FieldKind): boolean {
  if (kind === 'strings')
    return Array.isArray(value) && value.every((one) => typeof one === 'string');
  return kind.endsWith('?')
    ? value === null || typeof value === kind.slice(0, -1)
    : typeof value === kind;
}
