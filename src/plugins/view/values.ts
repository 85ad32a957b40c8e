/** The values of expressions, and their types. */
import type { Query } from '../../wire/query.ts';

/** What an expression works with. */
export type Value = string | number | boolean | null | readonly Value[];

/** The type of a part as far as it is known before a query comes; `any`: only then. */
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

/** The value as a string. @throws ValueError if it is none */
export function asString(value: Value): string {
  if (typeof value !== 'string') throw new ValueError(`${typeOf(value)} where a string should be`);
  return value;
}

/** The value as a number. @throws ValueError if it is none */
export function asNumber(value: Value): number {
  if (typeof value !== 'number') throw new ValueError(`${typeOf(value)} where a number should be`);
  return value;
}

/** The value as true or false. @throws ValueError if it is neither */
export function asBool(value: Value): boolean {
  if (typeof value !== 'boolean') throw new ValueError(`${typeOf(value)} where a bool should be`);
  return value;
}

/** The value as an array. @throws ValueError if it is none */
export function asArray(value: Value): readonly Value[] {
  if (!Array.isArray(value)) throw new ValueError(`${typeOf(value)} where an array should be`);
  return value as readonly Value[];
}

/** Whether two values are equal; arrays are by their items. */
export function isSame(a: Value, b: Value): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return a === b;
  return (
    a.length === b.length && a.every((value, index) => isSame(value as Value, b[index] as Value))
  );
}
