import type { Clock } from '../base/clock.ts';
import { printHostPort } from '../base/ip.ts';
import { passedThrough } from '../runtime/memory-policy.ts';
import { inSlices } from '../base/slices.ts';
import { askStream, type RemoteServer } from '../transport/one-exchange.ts';
import { SignedExchange, type TsigSigningKey } from '../transport/tsig-keys.ts';
import { CLASS, rcodeName, TYPE } from '../wire/iana.ts';
import {
  dataOf,
  readMessage,
  writeMessage,
  type DnsRecord,
  type Message,
} from '../wire/message.ts';
import { NAME_MAX, printName, type WireName } from '../wire/name.ts';
import { Reader } from '../wire/reader.ts';
import { soa } from '../wire/record/table.ts';
import { GrowingBytes } from './growing.ts';
import { IncomingZone, type IncomingRoom, type Transferred } from './incoming-zone.ts';
import type { PackedZone } from './packed-zone.ts';
import { readPlainData } from './plain-data.ts';

/**
 * The limits for one transfer: the time without a message and the total time, in milliseconds, and the memory in bytes.
 */
export interface TransferInTerms extends IncomingRoom {
  readonly idleMs: number;
  readonly totalMs: number;
  readonly signal: AbortSignal;
  /** The query's ID. */
  readonly id: number;
  /** The key that the primary and this server share (RFC 8945), or null if nothing is signed. */
  readonly key: TsigSigningKey | null;
  /** Returns seconds since 1970, for signatures. */
  readonly seconds: () => number;
  /** The clock used when the received records are assembled in slices. */
  readonly clock: Clock;
}

/**
 * Fetches a zone from a primary, either all of it (AXFR, RFC 5936) or the changes since `old` (IXFR, RFC 1995). For the
 * latter, the primary may also send the whole zone. Nothing from an incomplete transfer is stored.
 * @throws Error worded for the log
 */
export async function transferIn(
  origin: WireName,
  old: PackedZone | null,
  server: RemoteServer,
  terms: TransferInTerms,
): Promise<Transferred> {
  const incoming = new IncomingZone(origin, old, terms);
  const type = old === null ? TYPE.AXFR : TYPE.IXFR;
  const message = writeMessage({
    ...emptyMessage,
    id: terms.id,
    question: [{ name: printName(origin), type, class: CLASS.IN }],
    authority: old === null ? [] : [soaOf(origin, old)],
  });
  let first = true;
  await askSigned(message, server, terms, (bytes) => {
    const begins = first;
    first = false;
    passedThrough(bytes.length);
    return takeMessage(bytes, terms.id, begins, incoming);
  });
  try {
    return await inSlices(incoming.finish(), terms.clock);
  } catch (error) {
    throw new Error(`${printHostPort(server.host, server.port)}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/**
 * Sends the query and passes on messages once they are verified. If there is a key, only signed messages are passed on,
 * and the last one must be signed.
 * @throws Error
 */
function askSigned(
  message: Uint8Array,
  server: RemoteServer,
  terms: TransferInTerms,
  take: (bytes: Uint8Array) => boolean,
): Promise<void> {
  const { key, seconds } = terms;
  if (key === null) return askStream([message], server, terms, take);
  const exchange = new SignedExchange(key);
  return askStream([exchange.sign(message, seconds())], server, terms, (bytes) => {
    const isSigned = exchange.prove(bytes, seconds());
    const isLast = take(bytes);
    if (isLast && !isSigned) throw new Error('the last message of the reply is not signed');
    return isLast;
  });
}

const emptyMessage: Message = {
  id: 0,
  flags: 0,
  rcode: 0,
  question: [],
  answer: [],
  authority: [],
  additional: [],
  edns: null,
};

/** Returns a record with the known serial that is otherwise empty (RFC 1995 section 3). */
function soaOf(origin: WireName, { serial }: PackedZone): DnsRecord {
  const name = printName(origin);
  const times = { refresh: 0, retry: 0, expire: 0, minimum: 0 };
  return {
    name,
    type: TYPE.SOA,
    class: CLASS.IN,
    ttl: 0,
    data: { mname: '.', rname: '.', serial, ...times },
  };
}

/**
 * Bytes in a message other than its records: header, question, signature. Anything beyond this counts as records, and a
 * message without records counts as `MESSAGE_LEAST` bytes. Otherwise, a primary could send messages forever.
 */
const MESSAGE_AROUND = 512;
const MESSAGE_LEAST = 16;

/** A record's owner and data without compression. There are many records, and none of them is stored in this form. */
const owner = new Uint8Array(NAME_MAX);
const data = new GrowingBytes();

/**
 * Processes the records in a message.
 * @returns true if it was the last message
 * @throws Error
 */
function takeMessage(bytes: Uint8Array, id: number, first: boolean, to: IncomingZone): boolean {
  const from = new Reader(bytes, 0, bytes.length);
  if (from.left < 12) throw new Error('a message is shorter than a header');
  if (from.u16() !== id) throw new Error('a message has a different id');
  const flags = from.u16();
  const rcode = flags & 0xf;
  if ((flags & 0x8000) === 0) throw new Error('a message is not a reply');
  if (rcode !== 0) throw new Error(`the transfer was answered with ${rcodeName(rcode)}`);
  const questions = from.u16();
  let answers = from.u16();
  from.u16();
  from.u16();
  for (let left = questions; left > 0; left--) {
    from.wireNameInto(owner);
    from.u16();
    from.u16();
  }
  if (first && answers === 0) throw new Error('the reply has no records');
  const least = to.bytes + Math.max(MESSAGE_LEAST, bytes.length - MESSAGE_AROUND);
  for (; answers > 0; answers--) {
    from.wireNameInto(owner);
    const type = from.u16();
    const rclass = from.u16();
    const ttl = from.u32();
    const length = from.u16();
    if (rclass !== CLASS.IN) throw new Error(`a record of class ${rclass}`);
    readPlainData(from, type, length, data);
    if (to.take(owner, type, ttl, data)) return true;
  }
  to.takesAtLeast(least);
  return to.isComplete;
}

/**
 * Returns the serial that a primary has for a zone.
 * @throws Error
 */
export async function primarySerial(
  origin: WireName,
  server: RemoteServer,
  terms: TransferInTerms,
): Promise<number> {
  const name = printName(origin);
  const question = [{ name, type: TYPE.SOA, class: CLASS.IN }];
  let serial: number | null = null;
  await askSigned(
    writeMessage({ ...emptyMessage, id: terms.id, question }),
    server,
    terms,
    (bytes) => {
      const { id, rcode, answer } = readMessage(bytes);
      if (id !== terms.id) throw new Error('a message has a different id');
      if (rcode !== 0) throw new Error(`the SOA query was answered with ${rcodeName(rcode)}`);
      for (const record of answer) serial ??= dataOf(record, soa)?.serial ?? null;
      return true;
    },
  );
  if (serial === null) throw new Error('there is no SOA record');
  return serial;
}
