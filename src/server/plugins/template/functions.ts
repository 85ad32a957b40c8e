/** Functions that templates can call. */
import { printFormatted } from './printf.ts';
import {
  asInteger,
  asString,
  isList,
  isMap,
  isTrue,
  printValue,
  typeOf,
  TemplateValueError,
  type GoValue,
} from './go-values.ts';

export interface TemplateFunction {
  /** Minimum number of arguments. */
  readonly least: number;
  readonly most: number;
  /** @throws TemplateValueError */
  readonly run: (values: readonly GoValue[]) => GoValue;
}

function exactly(count: number, run: TemplateFunction['run']): TemplateFunction {
  return { least: count, most: count, run };
}

function atLeast(count: number, run: TemplateFunction['run']): TemplateFunction {
  return { least: count, most: Infinity, run };
}

/**
 * The functions in Go's text/template, and `parseInt` from CoreDNS. `and` and `or` stop at the value that decides the
 * result.
 */
export const functions: ReadonlyMap<string, TemplateFunction> = new Map<string, TemplateFunction>([
  ['and', atLeast(1, (values) => decided(values, false))],
  ['or', atLeast(1, (values) => decided(values, true))],
  ['not', exactly(1, ([value]) => !isTrue(value))],
  ['eq', atLeast(2, ([first, ...others]) => others.some((other) => isEqual(first, other)))],
  ['ne', exactly(2, ([first, other]) => !isEqual(first, other))],
  ['lt', exactly(2, ([first, other]) => order(first, other) < 0)],
  ['le', exactly(2, ([first, other]) => order(first, other) <= 0)],
  ['gt', exactly(2, ([first, other]) => order(first, other) > 0)],
  ['ge', exactly(2, ([first, other]) => order(first, other) >= 0)],
  ['index', atLeast(1, ([value, ...keys]) => keys.reduce(indexed, value))],
  ['slice', { least: 1, most: 4, run: ([value, ...bounds]) => sliced(value, bounds) }],
  ['len', exactly(1, ([value]) => BigInt(lengthOf(value)))],
  ['print', atLeast(0, printed)],
  ['println', atLeast(0, (values) => `${values.map(printed1).join(' ')}\n`)],
  ['printf', atLeast(1, ([format, ...values]) => printFormatted(asString(format), values))],
  ['html', atLeast(0, (values) => escaped(printed(values), /['"&<>\0]/g, html))],
  ['js', atLeast(0, (values) => escaped(printed(values), /[\\'"<>&=]|[^ -~]/g, js))],
  ['urlquery', atLeast(0, (values) => urlQuery(printed(values)))],
  [
    'parseInt',
    exactly(3, ([text, base, bits]) =>
      parseUnsigned(asString(text), asInteger(base), asInteger(bits)),
    ),
  ],
]);

/** Returns the first value that is (or is not) true or, failing that, the last one. */
function decided(values: readonly GoValue[], by: boolean): GoValue {
  const at = values.findIndex((value) => isTrue(value) === by);
  return values.at(at);
}

function isEqual(first: GoValue, other: GoValue): boolean {
  for (const value of [first, other]) {
    if (isList(value) || isMap(value))
      throw new TemplateValueError(`non-comparable type ${typeOf(value)}`);
  }
  if (first === null || first === undefined || other === null || other === undefined) {
    return (first ?? null) === (other ?? null);
  }
  if (typeOf(first) !== typeOf(other))
    throw new TemplateValueError('incompatible types for comparison');
  return first === other;
}

function order(first: GoValue, other: GoValue): number {
  if (typeOf(first) !== typeOf(other))
    throw new TemplateValueError('incompatible types for comparison');
  if (typeof first !== 'string' && typeof first !== 'bigint' && typeof first !== 'number') {
    throw new TemplateValueError('invalid type for comparison');
  }
  return first === other ? 0 : first < (other as typeof first) ? -1 : 1;
}

function lengthOf(value: GoValue): number {
  if (typeof value === 'string') return utf8.encode(value).length;
  if (isList(value)) return value.length;
  if (isMap(value)) return value.size;
  throw new TemplateValueError(`len of type ${typeOf(value)}`);
}

function indexed(value: GoValue, key: GoValue): GoValue {
  if (isMap(value)) return value.get(asString(key)) ?? '';
  if (value === null || value === undefined) throw new TemplateValueError('index of untyped nil');
  if (typeof value !== 'string' && !isList(value))
    throw new TemplateValueError(`can't index item of type ${typeOf(value)}`);
  if (typeof key !== 'bigint')
    throw new TemplateValueError(`cannot index slice/array with type ${typeOf(key)}`);
  const items = typeof value === 'string' ? utf8.encode(value) : value;
  if (key < 0n || key >= BigInt(items.length))
    throw new TemplateValueError(`index out of range: ${key}`);
  const item = items[Number(key)];
  return typeof item === 'number' && typeof value === 'string' ? BigInt(item) : item;
}

function sliced(value: GoValue, bounds: readonly GoValue[]): GoValue {
  if (typeof value !== 'string' && !isList(value))
    throw new TemplateValueError(`can't slice item of type ${typeOf(value)}`);
  if (typeof value === 'string' && bounds.length === 3)
    throw new TemplateValueError('cannot 3-index slice a string');
  const items = typeof value === 'string' ? utf8.encode(value) : value;
  const [from = 0, to = items.length] = bounds.map((bound) => {
    const at = asInteger(bound);
    if (at < 0n || at > BigInt(items.length))
      throw new TemplateValueError(`index out of range: ${at}`);
    return Number(at);
  });
  if (from > to) throw new TemplateValueError(`invalid slice index: ${from} > ${to}`);
  return items instanceof Uint8Array
    ? decoder.decode(items.subarray(from, to))
    : items.slice(from, to);
}

/** Go's Sprint, which puts a space between two operands if neither is a string. */
function printed(values: readonly GoValue[]): string {
  let text = '';
  values.forEach((value, index) => {
    if (index > 0 && typeof value !== 'string' && typeof values[index - 1] !== 'string')
      text += ' ';
    text += printed1(value);
  });
  return text;
}

function printed1(value: GoValue): string {
  return printValue(value ?? null);
}

const html: Readonly<Record<string, string>> = {
  "'": '&#39;',
  '"': '&#34;',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\0': '\uFFFD',
};

const js: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  "'": "\\'",
  '"': '\\"',
  '<': '\\u003C',
  '>': '\\u003E',
  '&': '\\u0026',
  '=': '\\u003D',
};

function escaped(text: string, what: RegExp, table: Readonly<Record<string, string>>): string {
  return text.replace(
    what,
    (char) =>
      table[char] ??
      (char < ' ' || char === '\x7f'
        ? `\\u${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
        : char),
  );
}

/**
 * Go's QueryEscape, where a space becomes `+`, and all other characters except letters, digits and `-_.~` are
 * percent-encoded.
 */
function urlQuery(text: string): string {
  return encodeURIComponent(text)
    .replaceAll('%20', '+')
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Go's strconv.ParseUint. */
function parseUnsigned(text: string, base: bigint, bits: bigint): bigint {
  const refuse = (why: string): never => {
    throw new TemplateValueError(`strconv.ParseUint: parsing ${JSON.stringify(text)}: ${why}`);
  };
  if (base !== 0n && (base < 2n || base > 36n)) refuse(`invalid base ${base}`);
  if (bits < 0n || bits > 64n) refuse(`invalid bit size ${bits}`);
  const prefix = base === 0n ? /^0(?:([xob])|(?=\d))/i.exec(text) : null;
  const found =
    { x: 16, o: 8, b: 2 }[prefix?.[1]?.toLowerCase() ?? ''] ?? (prefix === null ? 10 : 8);
  const radix = base === 0n ? BigInt(found) : base;
  const digits =
    base === 0n ? text.slice(prefix?.[0].length ?? 0).replace(/(?<=\w)_(?=\w)/g, '') : text;
  if (digits === '' || digits.length > 80)
    refuse(digits === '' ? 'invalid syntax' : 'value out of range');
  let value = 0n;
  for (const char of digits.toLowerCase()) {
    const digit = '0123456789abcdefghijklmnopqrstuvwxyz'.indexOf(char);
    if (digit < 0 || BigInt(digit) >= radix) refuse('invalid syntax');
    value = value * radix + BigInt(digit);
  }
  if (value >= 1n << (bits === 0n ? 64n : bits)) refuse('value out of range');
  return value;
}

const utf8 = new TextEncoder();
const decoder = new TextDecoder();
