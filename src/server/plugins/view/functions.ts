/** Query fields and functions available to expressions. */
import { netHolds, parseAddress, parseNet, type Net } from '../../base/ip.ts';
import { className, typeName } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import {
  asArray,
  asMap,
  asNumber,
  asString,
  bounded,
  checkLength,
  isMap,
  isSame,
  step,
  TEXT_MAX,
  ExpressionValueError,
  type Type,
  type ExpressionValue,
} from './expression-values.ts';

/** The fields of a query under CoreDNS's names. None of them takes an argument. */
export const ofQuery: Readonly<
  Record<string, { readonly type: Type; read(query: Query): ExpressionValue }>
> = {
  bufsize: { type: 'number', read: (query) => query.offered },
  class: { type: 'string', read: (query) => className(query.class) },
  client_ip: { type: 'string', read: (query) => query.client },
  do: { type: 'bool', read: (query) => query.dnssecOk },
  id: { type: 'number', read: (query) => query.id },
  name: { type: 'string', read: (query) => query.name },
  opcode: { type: 'number', read: (query) => query.opcode },
  port: { type: 'string', read: (query) => String(query.peerPort) },
  proto: { type: 'string', read: ({ overStream }) => (overStream ? 'tcp' : 'udp') },
  server_ip: { type: 'string', read: (query) => query.local },
  server_port: { type: 'string', read: (query) => String(query.localPort) },
  size: { type: 'number', read: (query) => query.end - query.start },
  type: { type: 'string', read: (query) => typeName(query.type) },
};

export interface Builtin {
  readonly type: Type;
  /** Minimum and maximum number of arguments. */
  readonly arity: readonly [number, number];
  readonly run: (values: readonly ExpressionValue[], query: Query) => ExpressionValue;
}

function builtin(type: Type, arity: readonly [number, number], run: Builtin['run']): Builtin {
  return { type, arity, run };
}

function texts(
  type: Type,
  run: (...values: string[]) => ExpressionValue,
  count: number,
  most = count,
): Builtin {
  return builtin(type, [count, most], (values) => run(...values.map(asString)));
}

/** Functions under expr-lang's names, except `incidr` and `metadata`, which are CoreDNS's. */
export const builtins: Readonly<Record<string, Builtin>> = {
  incidr: texts('bool', inCidr, 2),
  metadata: builtin('string', [1, 1], ([label], query) => query.notes?.get(asString(label!)) ?? ''),
  len: builtin('number', [1, 1], ([value]) =>
    typeof value === 'string'
      ? Array.from(value).length
      : isMap(value!)
        ? value.size
        : asArray(value!).length,
  ),
  lower: texts('string', (text) => text.toLowerCase(), 1),
  upper: texts('string', (text) => text.toUpperCase(), 1),
  trim: texts(
    'string',
    (text, chars) => (chars === undefined ? text.trim() : trimmed(text, chars)),
    1,
    2,
  ),
  trimPrefix: texts(
    'string',
    (text, end) => (text.startsWith(end!) ? text.slice(end!.length) : text),
    2,
  ),
  trimSuffix: texts(
    'string',
    (text, end) => (end !== '' && text.endsWith(end!) ? text.slice(0, -end!.length) : text),
    2,
  ),
  hasPrefix: texts('bool', (text, end) => text.startsWith(end!), 2),
  hasSuffix: texts('bool', (text, end) => text.endsWith(end!), 2),
  indexOf: texts('number', (text, part) => text.indexOf(part!), 2),
  lastIndexOf: texts('number', (text, part) => text.lastIndexOf(part!), 2),
  replace: texts('string', replaced, 3),
  split: texts('array', (text, separator) => text.split(separator!), 2),
  join: builtin('string', [1, 2], ([items, separator = '']) =>
    joined(asArray(items!).map(asString), asString(separator)),
  ),
  first: builtin('any', [1, 1], ([items]) => asArray(items!)[0] ?? null),
  last: builtin('any', [1, 1], ([items]) => asArray(items!).at(-1) ?? null),
  int: builtin('number', [1, 1], ([value]) => Math.trunc(toNumber(value!))),
  float: builtin('number', [1, 1], ([value]) => toNumber(value!)),
  string: builtin('string', [1, 1], ([value]) =>
    typeof value === 'string' ? value : jsonOf(value!),
  ),
  abs: builtin('number', [1, 1], ([value]) => Math.abs(asNumber(value!))),
  min: builtin('number', [1, 16], (values) => Math.min(...numbersOf(values))),
  max: builtin('number', [1, 16], (values) => Math.max(...numbersOf(values))),
  floor: builtin('number', [1, 1], ([value]) => Math.floor(asNumber(value!))),
  ceil: builtin('number', [1, 1], ([value]) => Math.ceil(asNumber(value!))),
  // Halves are rounded away from zero.
  round: builtin('number', [1, 1], ([value]) => {
    const number = asNumber(value!);
    return Math.sign(number) * Math.round(Math.abs(number));
  }),
  sum: builtin('number', [1, 1], (values) => total(numbersOf(values))),
  mean: builtin('number', [1, 16], (values) => {
    const numbers = numbersOf(values);
    return numbers.length === 0 ? 0 : total(numbers) / numbers.length;
  }),
  median: builtin('number', [1, 16], (values) => {
    const numbers = numbersOf(values).toSorted((a, b) => a - b);
    const half = numbers.length >> 1;
    return numbers.length % 2 === 1
      ? numbers[half]!
      : ((numbers[half - 1] ?? 0) + (numbers[half] ?? 0)) / 2;
  }),
  repeat: builtin('string', [2, 2], ([text, times]) => {
    const [piece, count] = [asString(text!), asNumber(times!)];
    if (!Number.isInteger(count) || count < 0 || piece.length * count > TEXT_MAX)
      throw new ExpressionValueError(
        `a string of ${piece.length} characters cannot be repeated ${count} times`,
      );
    return piece.repeat(count);
  }),
  concat: builtin('array', [1, Infinity], (values) =>
    bounded(values.flatMap((one) => asArray(one))),
  ),
  flatten: builtin('array', [1, 1], ([items]) => {
    const flat: ExpressionValue[] = [];
    const add = (from: readonly ExpressionValue[]): void => {
      for (const one of from) {
        step();
        if (Array.isArray(one)) add(one);
        else bounded(flat).push(one);
      }
    };
    add(asArray(items!));
    return flat;
  }),
  reverse: builtin('array', [1, 1], ([items]) => asArray(items!).toReversed()),
  sort: builtin('array', [1, 2], ([items, order = 'asc']) => {
    if (order !== 'asc' && order !== 'desc')
      throw new ExpressionValueError(
        `the order must be 'asc’ or 'desc', not ${JSON.stringify(order)}`,
      );
    const sign = order === 'asc' ? 1 : -1;
    return asArray(items!).toSorted((a, b) => sign * compare(a, b));
  }),
  uniq: builtin('array', [1, 1], ([items]) => {
    const found: ExpressionValue[] = [];
    const plain = new Set<ExpressionValue>();
    for (const one of asArray(items!)) {
      const isThere = typeof one === 'object' ? isIn(one, found) : plain.has(one);
      if (isThere) continue;
      plain.add(one);
      found.push(one);
    }
    return found;
  }),
  take: builtin('array', [2, 2], ([items, given]) => {
    const count = asNumber(given!);
    if (!Number.isInteger(count) || count < 0)
      throw new ExpressionValueError(`${count} items cannot be taken`);
    return asArray(items!).slice(0, count);
  }),
  keys: builtin('array', [1, 1], ([map]) => [...asMap(map!).keys()]),
  values: builtin('array', [1, 1], ([map]) => [...asMap(map!).values()]),
  get: builtin('any', [2, 2], ([from, key]) => memberOf(from!, key!)),
  bitand: bits((a, b) => a & b),
  bitor: bits((a, b) => a | b),
  bitxor: bits((a, b) => a ^ b),
  bitnand: bits((a, b) => a & ~b),
  bitnot: builtin('number', [1, 1], ([value]) => Number(~asInt(value!))),
  bitshl: bits((a, b) => a << shift(b)),
  bitshr: bits((a, b) => a >> shift(b)),
  bitushr: bits((a, b) => BigInt.asUintN(64, a) >> shift(b)),
};

export const notThere: Readonly<Record<string, string>> = {
  if: 'write CONDITION ? A : B',
  reduce: 'write sum(), count() or any()',
  groupBy: 'write filter()',
  sortBy: 'write sort()',
  splitAfter: 'write split()',
  toPairs: 'write keys() and values()',
  fromPairs: 'write the map: {a: 1}',
  toJSON: 'write string()',
  fromJSON: 'write the value itself: arrays and maps are supported',
  toBase64: 'compare the text itself',
  fromBase64: 'compare the text itself',
  now: 'views cannot depend on the time; change the Corefile instead, and `reload` applies it',
  date: 'views cannot depend on the time; change the Corefile instead, and `reload` applies it',
  duration: 'views cannot depend on the time; change the Corefile instead, and `reload` applies it',
  timezone: 'views cannot depend on the time; change the Corefile instead, and `reload` applies it',
};

interface OverItems {
  readonly type: Type;
  /**
   * @param test an item's value, which must be a Boolean
   * @param value an item's value
   */
  readonly run: (
    items: readonly ExpressionValue[],
    test: (item: ExpressionValue) => boolean,
    value: (item: ExpressionValue) => ExpressionValue,
  ) => ExpressionValue;
}

function over(type: Type, run: OverItems['run']): OverItems {
  return { type, run };
}

/** Functions that apply a predicate to an array's items (`#`). */
export const overItems: Readonly<Record<string, OverItems>> = {
  all: over('bool', (items, test) => items.every(test)),
  any: over('bool', (items, test) => items.some(test)),
  none: over('bool', (items, test) => !items.some(test)),
  one: over('bool', (items, test) => items.filter(test).length === 1),
  count: over('number', (items, test) => items.filter(test).length),
  filter: over('array', (items, test) => items.filter(test)),
  map: over('array', (items, _test, value) => items.map(value)),
  find: over('any', (items, test) => items.find(test) ?? null),
  findIndex: over('number', (items, test) => items.findIndex(test)),
  findLast: over('any', (items, test) => items.findLast(test) ?? null),
  findLastIndex: over('number', (items, test) => items.findLastIndex(test)),
};

/**
 * True if an array contains the value, or a map has it as a key.
 * @throws ExpressionValueError if it is neither an array nor a map
 */
export function isIn(value: ExpressionValue, items: ExpressionValue): boolean {
  if (isMap(items)) return items.has(asString(value));
  return asArray(items).some((item) => isSame(item, value));
}

/**
 * Returns `of[key]`. Negative numbers count from the end, and a missing member is nil.
 * @throws ExpressionValueError if the value has no members
 */
export function memberOf(of: ExpressionValue, key: ExpressionValue): ExpressionValue {
  if (isMap(of)) return of.get(asString(key)) ?? null;
  if (typeof of === 'string') return of.at(asNumber(key)) ?? null;
  return asArray(of).at(asNumber(key)) ?? null;
}

/** Parses a CIDR with a slash. Returns null if it is malformed. */
export function readCidr(text: string): Net | null {
  return text.includes('/') ? parseNet(text) : null;
}

function inCidr(address: string, cidr?: string): boolean {
  const bytes = parseAddress(address);
  if (bytes === null) throw new ExpressionValueError('first argument is not an IP address');
  const net = readCidr(cidr!);
  if (net === null) throw new ExpressionValueError(`invalid CIDR address: ${cidr}`);
  return netHolds(net, bytes);
}

function replaced(text: string, from?: string, to?: string): string {
  const times = from === '' ? text.length + 1 : text.split(from!).length - 1;
  checkLength(text.length + times * (to!.length - from!.length));
  return text.replaceAll(from!, () => to!);
}

function joined(items: readonly string[], separator: string): string {
  checkLength(items.reduce((sum, { length }) => sum + length + separator.length, 0));
  return items.join(separator);
}

/** Returns a value as JSON. A value that is referenced in several places is written in each of them. */
function jsonOf(value: ExpressionValue): string {
  let characters = 0;
  return bounded(
    JSON.stringify(value, (_key, one: unknown) => {
      step();
      if (typeof one === 'string') checkLength((characters += one.length));
      return one instanceof Map ? Object.fromEntries(one) : one;
    }),
  );
}

function trimmed(text: string, chars: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && chars.includes(text[from]!)) from++;
  while (to > from && chars.includes(text[to - 1]!)) to--;
  return text.slice(from, to);
}

function toNumber(value: ExpressionValue): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof number !== 'number' || Number.isNaN(number))
    throw new ExpressionValueError(`no number: ${JSON.stringify(value)}`);
  return number;
}

function numbersOf(values: readonly ExpressionValue[]): readonly number[] {
  return values.flatMap((value) =>
    Array.isArray(value) ? asArray(value).map(asNumber) : asNumber(value),
  );
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}

/** Compares two strings or two numbers. */
export function compare(a: ExpressionValue, b: ExpressionValue): number {
  if (typeof a !== 'string') return asNumber(a) - asNumber(b);
  return a === asString(b) ? 0 : a < asString(b) ? -1 : 1;
}

function bits(run: (a: bigint, b: bigint) => bigint): Builtin {
  return builtin('number', [2, 2], ([a, b]) =>
    Number(BigInt.asIntN(64, run(asInt(a!), asInt(b!)))),
  );
}

/** Converts to 64-bit integers, as in expr-lang. */
function asInt(value: ExpressionValue): bigint {
  const number = asNumber(value);
  if (!Number.isInteger(number)) throw new ExpressionValueError(`${number} has no bits`);
  return BigInt.asIntN(64, BigInt(number));
}

/** A shift by 64 or more gives zero. */
function shift(by: bigint): bigint {
  if (by < 0n) throw new ExpressionValueError('invalid operation: negative shift count');
  return by > 64n ? 64n : by;
}
