import { FLAG, HEADER, TYPE } from './iana.ts';
import { parseName } from './name.ts';
import { readEdns, writeEdns, type Edns } from './edns.ts';
import { Reader, ReadError } from './reader.ts';
import { Records } from './records.ts';
import { Opaque, type RecordKind } from './record/kind.ts';
import { kindOf } from './record/table.ts';
import type { Reply } from './reply.ts';
import { MessageWriter, SECTION, type Section } from './writer.ts';

/** The question of a message. */
export interface Question {
  /** Absolute name in text form. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
}

/** A record. The form of `data` depends on the type: `dataOf(record, a)?.address`. */
export interface DnsRecord {
  /** Absolute owner name in text form. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  /** Seconds, 32 bits. */
  readonly ttl: number;
  readonly data: object;
}

/**
 * A message as objects, for tools, tests and plugins that examine individual records. The hot path (Query, Reply,
 * stamp) never creates one. OPT is not among the records, but in `edns`.
 */
export interface Message {
  readonly id: number;
  /** The second header word without the four bits of its rcode: QR, opcode, AA, TC, RD, RA, Z, AD, CD (`FLAG`). */
  readonly flags: number;
  /** All 12 bits. Values above 15 require `edns`. */
  readonly rcode: number;
  readonly question: readonly Question[];
  readonly answer: readonly DnsRecord[];
  readonly authority: readonly DnsRecord[];
  readonly additional: readonly DnsRecord[];
  readonly edns: Edns | null;
}

/** A record of a reply, with the TTL that it is sent with, and the size of its data in bytes. */
export interface AnsweredRecord {
  readonly record: DnsRecord;
  readonly size: number;
}

/** Returns the answer section, which is empty if the message cannot be read. */
export function sentAnswers(reply: Reply): readonly AnsweredRecord[] {
  let answer: readonly DnsRecord[];
  try {
    ({ answer } = readMessage(reply.bytes, reply.start, reply.end));
  } catch (error) {
    if (error instanceof ReadError) return [];
    throw error;
  }
  walker.of(reply);
  return answer.map((record) => {
    walker.next();
    return { record: { ...record, ttl: walker.ttl }, size: walker.dataLength };
  });
}

const walker = new Records();

/** Returns the data of `record` if it is of this kind, and null otherwise. */
export function dataOf<D extends object>(record: DnsRecord, kind: RecordKind<D>): D | null {
  return record.type === kind.type &&
    (!(record.data instanceof Opaque) || record.type === TYPE.NULL)
    ? (record.data as D)
    : null;
}

/**
 * Reads the message `bytes[start, end)`, ignoring bytes after its last record.
 * @throws ReadError
 */
export function readMessage(bytes: Uint8Array, start = 0, end: number = bytes.length): Message {
  const from = new Reader(bytes, start, end);
  if (from.left < HEADER.SIZE) from.fail('the message is shorter than a header', end);
  const id = from.u16();
  const word = from.u16();
  const counts = [from.u16(), from.u16(), from.u16(), from.u16()] as const;
  const question: Question[] = [];
  while (question.length < counts[0])
    question.push({ name: from.name(), type: from.u16(), class: from.u16() });
  const answer = readRecords(from, counts[1]);
  const authority = readRecords(from, counts[2]);
  const additional: DnsRecord[] = [];
  let edns: Edns | null = null;
  let high = 0;
  for (let left = counts[3]; left > 0; left--) {
    if (!atOpt(from)) {
      additional.push(readRecord(from));
      continue;
    }
    if (edns !== null) from.fail('there is a second OPT');
    high = from.message[from.at + 5]!;
    edns = readEdns(from);
  }
  const rcode = (word & FLAG.RCODE) | (high << 4);
  return { id, flags: word & ~FLAG.RCODE, rcode, question, answer, authority, additional, edns };
}

function readRecords(from: Reader, count: number): DnsRecord[] {
  const records: DnsRecord[] = [];
  while (records.length < count) records.push(readRecord(from));
  return records;
}

/** Returns true if the next record is an OPT record at the root. */
function atOpt(from: Reader): boolean {
  const { message, at } = from;
  return (
    from.left >= 11 && message[at] === 0 && message[at + 1] === 0 && message[at + 2] === TYPE.OPT
  );
}

/**
 * Reads one record.
 * @throws ReadError. This includes OPT, which is permitted only once, in the additional section and at the root
 */
function readRecord(from: Reader): DnsRecord {
  const begin = from.at;
  const name = from.name();
  const type = from.u16();
  if (type === TYPE.OPT)
    from.fail('OPT is not alone, not the root, or not in the additional section', begin);
  const rclass = from.u16();
  const ttl = from.u32();
  return { name, type, class: rclass, ttl, data: readData(from, type, from.u16()) };
}

/**
 * Reads `length` bytes of record data. Empty data is accepted for any type.
 * @throws ReadError
 */
export function readData(from: Reader, type: number, length: number): object {
  if (length > from.left) from.fail('the data of a record runs past the end of the message');
  const kind = length === 0 ? undefined : kindOf(type);
  if (kind === undefined) return new Opaque(from.bytes(length));
  const outer = from.end;
  from.end = from.at + length;
  const data = kind.read(from);
  if (from.left > 0) from.fail(`the data of ${kind.name} is longer than it should be`);
  from.end = outer;
  return data;
}

/**
 * The writer for `writeMessage`. It is created on first use and reused, because creating one takes longer than writing
 * a hundred messages.
 */
let shared: MessageWriter | null = null;

/**
 * Encodes a message. Names are compressed where that is allowed.
 * @throws MessageFull, NameError, or RangeError for a value that has no wire form
 */
export function writeMessage(
  message: Message,
  to: MessageWriter = (shared ??= new MessageWriter()),
): Uint8Array {
  const { edns, rcode } = message;
  if (rcode > (edns === null ? FLAG.RCODE : 0xfff))
    throw new RangeError(`result code ${rcode} needs EDNS`);
  to.begin(message.id, (message.flags & ~FLAG.RCODE) | (rcode & FLAG.RCODE));
  for (const { name, type, class: qclass } of message.question)
    to.question(parseName(name), type, qclass);
  for (const record of message.answer) writeRecord(to, SECTION.answer, record);
  for (const record of message.authority) writeRecord(to, SECTION.authority, record);
  // TSIG must remain the last record, even after OPT (RFC 8945 section 5.1).
  const signed = message.additional.at(-1)?.type === TYPE.TSIG;
  const before = signed ? message.additional.slice(0, -1) : message.additional;
  for (const record of before) writeRecord(to, SECTION.additional, record);
  if (edns !== null) writeEdns(to, edns, rcode);
  if (signed) writeRecord(to, SECTION.additional, message.additional.at(-1)!);
  return to.take();
}

/** Writes a message with one question, which has RD set unless `flags` are given. */
export function writeQuery({
  id,
  name,
  type,
  class: qclass = 1,
  flags = FLAG.RD,
  edns = null,
}: Pick<Message, 'id'> &
  Pick<Question, 'name' | 'type'> &
  Partial<Pick<Question, 'class'> & Pick<Message, 'flags' | 'edns'>>): Uint8Array {
  const question = [{ name, type, class: qclass }];
  const none = { answer: [], authority: [], additional: [] };
  return writeMessage({ id, flags, rcode: 0, question, ...none, edns });
}

export function writeRecord(to: MessageWriter, section: Section, record: DnsRecord): void {
  to.open(section, parseName(record.name), record.type, record.ttl, record.class);
  writeData(to, record.type, record.data);
  to.close();
}

/** Writes record data given in the form that `readData` returns. */
export function writeData(to: MessageWriter, type: number, data: object): void {
  if (data instanceof Opaque) return to.bytes(data.bytes);
  const kind = kindOf(type);
  if (kind === undefined) throw new RangeError(`data of type ${type} must be Opaque`);
  kind.write(data, to);
}
