/** What expressions can ask of a query, and the functions that they may call. */
import { netHolds, parseAddress, parseNet, printAddress, type Net } from '../../base/ip.ts';
import { className, typeName } from '../../wire/iana.ts';
import type { Query } from '../../wire/query.ts';
import {
  asArray,
  asBool,
  asNumber,
  asString,
  isSame,
  ExpressionValueError,
  type Type,
  type ExpressionValue,
} from './values.ts';

/** What can be asked of a query; CoreDNS's names. None takes an argument. */
export const ofQuery: Readonly<
  Record<string, { readonly type: Type; read(query: Query): ExpressionValue }>
> = {
  bufsize: { type: 'number', read: (query) => query.limit },
  class: { type: 'string', read: (query) => className(query.class) },
  client_ip: {
    type: 'string',
    read: (query) => printAddress(query.peer, query.peerAt, query.family === 4 ? 4 : 16),
  },
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

/** A function that expressions may call. */
export interface Builtin {
  readonly type: Type;
  /** Least and most arguments. */
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

/** Functions of values, by expr-lang's names; `incidr` and `metadata` are CoreDNS's. */
export const builtins: Readonly<Record<string, Builtin>> = {
  incidr: texts('bool', inCidr, 2),
  metadata: builtin('string', [1, 1], ([label], query) => query.notes?.get(asString(label!)) ?? ''),
  len: builtin('number', [1, 1], ([value]) =>
    typeof value === 'string' ? Array.from(value).length : asArray(value!).length,
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
  replace: texts('string', (text, from, to) => text.replaceAll(from!, () => to!), 3),
  split: texts('array', (text, separator) => text.split(separator!), 2),
  join: builtin('string', [1, 2], ([items, separator = '']) =>
    asArray(items!).map(asString).join(asString(separator)),
  ),
  first: builtin('any', [1, 1], ([items]) => asArray(items!)[0] ?? null),
  last: builtin('any', [1, 1], ([items]) => asArray(items!).at(-1) ?? null),
  int: builtin('number', [1, 1], ([value]) => Math.trunc(toNumber(value!))),
  float: builtin('number', [1, 1], ([value]) => toNumber(value!)),
  string: builtin('string', [1, 1], ([value]) =>
    typeof value === 'string' ? value : JSON.stringify(value),
  ),
  abs: builtin('number', [1, 1], ([value]) => Math.abs(asNumber(value!))),
  min: builtin('number', [1, 16], (values) => Math.min(...values.map(asNumber))),
  max: builtin('number', [1, 16], (values) => Math.max(...values.map(asNumber))),
};

/** Functions of an array and a predicate over its items (`#`). */
export const overItems: Readonly<
  Record<
    string,
    {
      readonly type: Type;
      run(
        items: readonly ExpressionValue[],
        test: (item: ExpressionValue) => ExpressionValue,
      ): ExpressionValue;
    }
  >
> = {
  all: { type: 'bool', run: (items, test) => items.every((item) => asBool(test(item))) },
  any: { type: 'bool', run: (items, test) => items.some((item) => asBool(test(item))) },
  none: { type: 'bool', run: (items, test) => !items.some((item) => asBool(test(item))) },
  one: {
    type: 'bool',
    run: (items, test) => items.filter((item) => asBool(test(item))).length === 1,
  },
  count: {
    type: 'number',
    run: (items, test) => items.filter((item) => asBool(test(item))).length,
  },
  filter: { type: 'array', run: (items, test) => items.filter((item) => asBool(test(item))) },
  map: { type: 'array', run: (items, test) => items.map((item) => test(item)) },
};

/** Whether the value is among the items. @throws ExpressionValueError if these are no array */
export function isIn(value: ExpressionValue, items: ExpressionValue): boolean {
  return asArray(items).some((item) => isSame(item, value));
}

/** A CIDR with its slash; null if it is none. */
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
