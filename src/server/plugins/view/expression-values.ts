/** The values of expressions, and their types. */
import type { Query } from '../../transport/query.ts';

export type ExpressionValue =
  | string
  | number
  | boolean
  | null
  | readonly ExpressionValue[]
  | ReadonlyMap<string, ExpressionValue>;

/** The part's type, if it is known before a query arrives, otherwise `any`. */
export type Type = 'string' | 'number' | 'bool' | 'nil' | 'array' | 'map' | 'any';

/** Evaluates a part. Inside a predicate, `item` is the value of `#`. */
export type Evaluate = (query: Query, item: ExpressionValue) => ExpressionValue;

/** A compiled part with its value and its type. */
export interface CompiledPart {
  readonly type: Type;
  readonly run: Evaluate;
  /** The part's value, if it is the same for every query. */
  readonly constant?: ExpressionValue;
  /** The name of the query function that it calls, e.g. `client_ip`. */
  readonly call?: string;
  readonly at: number;
}

/** Thrown for a value that an operator or function does not accept, in which case the expression counts as false. */
export class ExpressionValueError extends Error {
  override readonly name = 'ExpressionValueError';
}

export function typeOf(value: ExpressionValue): Type {
  if (typeof value === 'string' || typeof value === 'number') return typeof value as 'string';
  if (typeof value === 'boolean') return 'bool';
  if (value === null) return 'nil';
  return isMap(value) ? 'map' : 'array';
}

/** Returns a function that checks a value's type. */
function checked<T extends ExpressionValue>(what: string, type: Type): Checked<T> {
  return (value) => {
    if (typeOf(value) !== type)
      throw new ExpressionValueError(`${typeOf(value)} instead of ${what}`);
    return value as T;
  };
}

type Checked<T extends ExpressionValue> = (value: ExpressionValue) => T;
type ValueMap = ReadonlyMap<string, ExpressionValue>;

/** These throw an ExpressionValueError for any other value. */
export const asString: Checked<string> = checked('a string', 'string');
export const asNumber: Checked<number> = checked('a number', 'number');
export const asBool: Checked<boolean> = checked('a bool', 'bool');
export const asArray: Checked<readonly ExpressionValue[]> = checked('an array', 'array');
export const asMap: Checked<ValueMap> = checked('a map', 'map');

export function isMap(value: ExpressionValue): value is ValueMap {
  return value instanceof Map;
}

/** Maximum number of items in an array created by an expression, because it runs for every query. */
export const ITEMS_MAX = 10_000;
/** Maximum number of characters in a text created by an expression. */
export const TEXT_MAX = 65_536;

/** @throws ExpressionValueError if there are too many */
export function bounded<T extends string | readonly ExpressionValue[]>(made: T): T {
  if (made.length <= (typeof made === 'string' ? TEXT_MAX : ITEMS_MAX)) return made;
  const what = typeof made === 'string' ? `${TEXT_MAX} characters` : `${ITEMS_MAX} items`;
  throw new ExpressionValueError(
    `the result would have ${made.length}, but at most ${what} are allowed`,
  );
}

/**
 * Maximum number of steps in one evaluation, which take a few milliseconds. A step is one item examined in sequence, or
 * a group of eight characters.
 */
const STEPS_MAX = 100_000;
let steps = 0;

/** Starts an evaluation; evaluations never overlap. */
export function beginSteps(): void {
  steps = 0;
}

/**
 * Counts steps.
 * @throws ExpressionValueError if they are too many for one query
 */
export function step(count = 1): void {
  steps += count;
  if (steps > STEPS_MAX) throw new ExpressionValueError(`more than ${STEPS_MAX} steps`);
}

/**
 * Counts the steps needed to iterate over the values.
 * @throws ExpressionValueError
 */
export function stepThrough(values: readonly ExpressionValue[]): void {
  for (const value of values)
    if (typeof value === 'string') step(value.length >> 3);
    else if (Array.isArray(value)) step(value.length);
    else if (isMap(value)) step(value.size);
}

/** @throws ExpressionValueError if a text with this many characters would be too long */
export function checkLength(characters: number): void {
  if (characters > TEXT_MAX)
    throw new ExpressionValueError(
      `the result would have ${characters} characters, but at most ${TEXT_MAX} are allowed`,
    );
}

/**
 * True if two values are equal, comparing arrays and maps item by item.
 * @throws ExpressionValueError after too many steps
 */
export function isSame(a: ExpressionValue, b: ExpressionValue): boolean {
  step();
  if (a === b) return true;
  if (isMap(a) && isMap(b))
    return (
      a.size === b.size && [...a].every(([key, value]) => b.has(key) && isSame(value, b.get(key)!))
    );
  if (!Array.isArray(a) || !Array.isArray(b)) return false;
  return (
    a.length === b.length &&
    a.every((value, index) => isSame(value as ExpressionValue, b[index] as ExpressionValue))
  );
}
