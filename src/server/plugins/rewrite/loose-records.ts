/** Records with their names as text, so that they can be changed and written again. */
import { TYPE } from '../../wire/iana.ts';
import { firstName, layoutOf } from '../../wire/layout.ts';
import { parseName, printName, type WireName } from '../../wire/name.ts';
import { expandName, Records } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';
import { skipName } from '../../wire/skip.ts';
import type { MessageWriter, Section } from '../../wire/writer.ts';

/** A record outside of its message, with names as text and everything else as bytes. */
export interface LooseRecord {
  readonly section: Section;
  owner: string;
  readonly type: number;
  readonly class: number;
  /** TTL in seconds. */
  ttl: number;
  /** The data before its names, the names themselves, and the data after them. */
  readonly head: Uint8Array;
  readonly names: string[];
  readonly tail: Uint8Array;
}

/** Types whose data may be compressed (RFC 3597 section 4). */
const compressed: ReadonlySet<number> = new Set([
  TYPE.NS,
  TYPE.MD,
  TYPE.MF,
  TYPE.CNAME,
  TYPE.SOA,
  TYPE.MB,
  TYPE.MG,
  TYPE.MR,
  TYPE.PTR,
  TYPE.MINFO,
  TYPE.MX,
]);

/** Types with a target. `answer value` applies to the first name in their data. */
const valued: ReadonlySet<number> = new Set([
  TYPE.SRV,
  TYPE.MX,
  TYPE.CNAME,
  TYPE.NS,
  TYPE.DNAME,
  TYPE.NAPTR,
  TYPE.SOA,
  TYPE.PTR,
]);

/** True if `answer value` rules apply to this record. */
export function hasValue({ type, names }: LooseRecord): boolean {
  return names.length > 0 && valued.has(type);
}

const walker = new Records();

/** Returns a reply's records in order, with the TTLs they would be sent with. */
export function looseRecords(reply: Reply): LooseRecord[] {
  const all: LooseRecord[] = [];
  for (walker.of(reply); walker.next();) {
    const { bytes, start, section, type, ttl } = walker;
    const owner = printName(walker.owner);
    all.push({
      section,
      owner,
      type,
      class: walker.class,
      ttl,
      ...looseData(bytes, start, walker),
    });
  }
  return all;
}

function looseData(
  bytes: Uint8Array,
  start: number,
  { type, dataAt, dataLength }: Records,
): Pick<LooseRecord, 'head' | 'names' | 'tail'> {
  const end = dataAt + dataLength;
  const shape = layoutOf(type);
  if (shape === undefined || shape.names === 0 || dataLength === 0) {
    return { head: bytes.subarray(dataAt, end), names: [], tail: none };
  }
  let at = firstName(bytes, start, dataAt, end, shape);
  const head = bytes.subarray(dataAt, at);
  const names: string[] = [];
  while (names.length < shape.names) {
    names.push(printName(expandName(bytes, start, at)));
    at = skipName(bytes, at, end);
  }
  return { head, names, tail: bytes.subarray(at, end) };
}

/** Writes records to the current message. @throws NameError, MessageFull */
export function writeLoose(records: Iterable<LooseRecord>, to: MessageWriter): void {
  const wires = new Map<string, WireName>();
  const wire = (name: string): WireName => {
    let found = wires.get(name);
    if (found === undefined) wires.set(name, (found = parseName(name)));
    return found;
  };
  for (const record of records) {
    to.open(record.section, wire(record.owner), record.type, record.ttl, record.class);
    to.bytes(record.head);
    for (const name of record.names) to.name(wire(name), compressed.has(record.type));
    to.bytes(record.tail);
    to.close();
  }
}

const none = new Uint8Array(0);
