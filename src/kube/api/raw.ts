/** An object as the API server or a manifest spells it: nothing about its shape is sure. */
export type Raw = { readonly [key: string]: unknown };

const nothing: Raw = Object.freeze({});

/** The object at `key`; an empty one if it is missing or something else. */
export function child(raw: Raw, key: string): Raw {
  return asRaw(raw[key]);
}

export function asRaw(value: unknown): Raw {
  return isRaw(value) ? value : nothing;
}

export function isRaw(value: unknown): value is Raw {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The text at `key`; `''` if it is missing or no text. */
export function text(raw: Raw, key: string): string {
  const value = raw[key];
  return typeof value === 'string' ? value : '';
}

/** The non-empty texts of the list at `key`. */
export function texts(raw: Raw, key: string): string[] {
  return list(raw, key).filter(
    (value): value is string => typeof value === 'string' && value !== '',
  );
}

export function list(raw: Raw, key: string): readonly unknown[] {
  const value = raw[key];
  return Array.isArray(value) ? value : [];
}

/** The objects of the list at `key`. */
export function children(raw: Raw, key: string): Raw[] {
  return list(raw, key).filter(isRaw);
}

/** The entries of the object at `key` whose values are texts: labels, annotations, selectors. */
export function textMap(raw: Raw, key: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(child(raw, key))) {
    if (typeof value === 'string') found[name] = value;
  }
  return found;
}
