import { TYPE } from './iana.ts';
import { checkName, ReadError, type NamePlaces } from './reader.ts';

/**
 * The positions of names in a record's data. Moving a record to another message changes its compression pointers, so
 * every name in it must be known. Types that are not listed contain no names, or only names that are never compressed
 * (RFC 3597, section 4). Their data is copied unchanged.
 */
export interface Layout {
  /** Number of fixed bytes before the first name. */
  readonly prefix: number;
  /** Number of character strings between the fixed bytes and the first name. */
  readonly strings: number;
  readonly names: number;
  /** Number of bytes after the last name; -1: any. */
  readonly suffix: number;
}

function layout(prefix: number, strings: number, names: number, suffix: number): Layout {
  return { prefix, strings, names, suffix };
}

const oneName = layout(0, 0, 1, 0);
const twoNames = layout(0, 0, 2, 0);
const numberAndName = layout(2, 0, 1, 0);

const byType: (Layout | undefined)[] = [];
for (const type of [
  TYPE.NS,
  TYPE.MD,
  TYPE.MF,
  TYPE.CNAME,
  TYPE.MB,
  TYPE.MG,
  TYPE.MR,
  TYPE.PTR,
  TYPE.DNAME,
]) {
  byType[type] = oneName;
}
for (const type of [TYPE.MINFO, TYPE.RP]) byType[type] = twoNames;
for (const type of [TYPE.MX, TYPE.AFSDB, TYPE.RT, TYPE.KX]) byType[type] = numberAndName;
byType[TYPE.A] = layout(4, 0, 0, 0);
byType[TYPE.AAAA] = layout(16, 0, 0, 0);
byType[TYPE.SOA] = layout(0, 0, 2, 20);
byType[TYPE.SRV] = layout(6, 0, 1, 0);
byType[TYPE.NAPTR] = layout(4, 3, 1, 0);
byType[TYPE.PX] = layout(2, 0, 2, 0);
byType[TYPE.SIG] = layout(18, 0, 1, -1);
byType[TYPE.RRSIG] = layout(18, 0, 1, -1);
byType[TYPE.NSEC] = layout(0, 0, 1, -1);
byType[TYPE.SVCB] = layout(2, 0, 1, -1);
byType[TYPE.HTTPS] = layout(2, 0, 1, -1);
byType[TYPE.TSIG] = layout(0, 0, 1, -1);
byType[TYPE.TKEY] = layout(0, 0, 1, -1);
// Fill every index, so that V8 keeps the table dense and a lookup is a single load.
for (let type = 0; type < 256; type++) byType[type] ??= undefined;

/** Returns the layout of a type's data, or undefined if that contains no compressible names. */
export function layoutOf(type: number): Layout | undefined {
  return type < 256 ? byType[type] : undefined;
}

/**
 * Returns the position of the first name in the data at `at`.
 * @throws ReadError
 */
export function firstName(
  bytes: Uint8Array,
  start: number,
  at: number,
  end: number,
  shape: Layout,
): number {
  let to = at + shape.prefix;
  for (let i = 0; i < shape.strings && to < end; i++) to += bytes[to]! + 1;
  if (to > end || (to === end && shape.names > 0)) {
    throw new ReadError('the data of a record is too short', at - start);
  }
  return to;
}

/**
 * Checks the fixed parts and the names in the data `bytes[at, end)`. Empty data is accepted for any type (RFC 2136).
 * @param places records the positions of names
 * @throws ReadError
 */
export function checkData(
  bytes: Uint8Array,
  start: number,
  at: number,
  end: number,
  type: number,
  places: NamePlaces | null = null,
): void {
  if (at === end) return;
  const shape = layoutOf(type);
  if (shape === undefined) return;
  let to = firstName(bytes, start, at, end, shape);
  for (let i = 0; i < shape.names; i++) to = checkName(bytes, start, to, end, places);
  if (shape.suffix >= 0 && to + shape.suffix !== end) {
    throw new ReadError('the data of a record has a wrong length', at - start);
  }
}
