import type { Query } from '../../wire/query.ts';

/** What an expression works with. */
export type Value = string | number | boolean | null | readonly Value[];

export type Type = 'string' | 'number' | 'bool' | 'nil' | 'array' | 'any';

/** `item` is what `#` stands for inside a predicate. */
export type Run = (query: Query, item: Value) => Value;

/** A compiled part: what it gives, and of which type. */
export interface Part {
  readonly type: Type;
  readonly run: Run;
  /** Its value, if it is the same for every query. */
  readonly constant?: Value;
  /** The function of the query that it is a call of, e.g. `client_ip`. */
  readonly call?: string;
  readonly at: number;
}

/** A value that an operator or function cannot work with: the expression counts as false. */
export class ValueError extends Error {
  override readonly name = 'ValueError';
}

function typeOf(value: Value): Type {
  if (value === null) return 'nil';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : (typeof value as 'string' | 'number');
}

export function asString(value: Value): string {
  if (typeof value !== 'string') throw new ValueError(`${typeOf(value)} where a string should be`);
  return value;
}

export function asNumber(value: Value): number {
  if (typeof value !== 'number') throw new ValueError(`${typeOf(value)} where a number should be`);
  return value;
}

export function asBool(value: Value): boolean {
  if (typeof value !== 'boolean') throw new ValueError(`${typeOf(value)} where a bool should be`);
  return value;
}

export function asArray(value: Value): readonly Value[] {
  if (!Array.isArray(value)) throw new ValueError(`${typeOf(value)} where an array should be`);
  return value as readonly Value[];
}

export function isSame(a: Value, b: Value): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return a === b;
  return (
    a.length === b.length && a.every((value, index) => isSame(value as Value, b[index] as Value))
  );
}
