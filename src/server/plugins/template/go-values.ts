/**
 * Values in Go's templates. Integers are bigint, to cover all 64 bits, and floating-point numbers are number. `null` is
 * nil, and `undefined` is the value of a missing key in a map.
 */
export type GoValue =
  | string
  | bigint
  | number
  | boolean
  | null
  | undefined
  | readonly GoValue[]
  | GoMap
  | Struct;

export type GoMap = ReadonlyMap<string, GoValue>;

export class Struct {
  /** Go's name for its type, for messages. */
  readonly type: string;
  readonly #fields: Readonly<Record<string, () => GoValue>>;
  readonly #methods: Readonly<Record<string, Method>>;

  constructor(
    type: string,
    fields: Readonly<Record<string, () => GoValue>>,
    methods: Readonly<Record<string, Method>> = {},
  ) {
    this.type = type;
    this.#fields = fields;
    this.#methods = methods;
  }

  field(name: string): (() => GoValue) | null {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name]! : null;
  }

  method(name: string): Method | null {
    return Object.hasOwn(this.#methods, name) ? this.#methods[name]! : null;
  }
}

export interface Method {
  readonly arguments: number;
  run(values: readonly GoValue[]): GoValue;
}

export class TemplateValueError extends Error {
  override readonly name = 'TemplateValueError';
}

/** Returns Go's name for the value's type, as used in messages. */
export function typeOf(value: GoValue): string {
  if (value === null || value === undefined) return 'nil';
  if (Array.isArray(value)) return '[]string';
  if (value instanceof Map) return 'map[string]string';
  if (value instanceof Struct) return value.type;
  switch (typeof value) {
    case 'bigint':
      return 'int';
    case 'number':
      return 'float64';
    case 'boolean':
      return 'bool';
    default:
      return 'string';
  }
}

/** As in Go, any value except its type's zero value is true, and structs always are. */
export function isTrue(value: GoValue): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Map) return value.size > 0;
  return Boolean(value);
}

/**
 * Returns the value as a string.
 * @throws TemplateValueError if it is not one
 */
export function asString(value: GoValue): string {
  if (typeof value === 'string') return value;
  throw value === undefined
    ? new TemplateValueError('invalid value; expected string')
    : new TemplateValueError(`wrong type for value; expected string; got ${typeOf(value)}`);
}

/**
 * Returns the value as an integer.
 * @throws TemplateValueError if it is not one
 */
export function asInteger(value: GoValue): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value);
  throw new TemplateValueError(`expected integer; found ${typeOf(value)}`);
}

export function isMap(value: GoValue): value is GoMap {
  return value instanceof Map;
}

export function isList(value: GoValue): value is readonly GoValue[] {
  return Array.isArray(value);
}

/** Formats a value as `%v` does. */
export function printValue(value: GoValue): string {
  if (value === undefined) return '<no value>';
  if (value === null) return '<nil>';
  if (isList(value)) return `[${value.map(printValue).join(' ')}]`;
  if (isMap(value)) {
    const keys = [...value.keys()].toSorted();
    return `map[${keys.map((key) => `${key}:${printValue(value.get(key))}`).join(' ')}]`;
  }
  if (value instanceof Struct)
    throw new TemplateValueError(`can't print a value of type ${value.type}`);
  return typeof value === 'number' ? printFloat(value) : String(value);
}

/**
 * Formats a number as the shortest text that is parsed as the same number. Exponents are used from 21 on and below -4,
 * and have two digits.
 */
export function printFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const exponent = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  if (exponent >= -4 && exponent < 21) {
    const text = String(value);
    return text.includes('e') ? value.toFixed(20).replace(/(?<!0)0+$/, '') : text;
  }
  return twoDigits(value.toExponential());
}

/** `1e-7` → `1e-07`. */
export function twoDigits(text: string): string {
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}
