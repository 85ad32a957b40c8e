import { readUint16 } from '../base/big-endian.ts';
import { areOptions } from './edns-options.ts';
import { FLAG, HEADER, MESSAGE_MAX, OPTION, TYPE } from './iana.ts';
import { checkData } from './layout.ts';
import { messageNames as names } from './message-names.ts';
import { mover } from './mover.ts';
import type { QueryMessage } from './query-message.ts';
import { checkName, NamePlaces, ReadError } from './reader.ts';
import { Reply } from './reply.ts';
import { replySlab } from './slab.ts';

/**
 * Converts the message `bytes[start, end)` from an upstream to a Reply. The whole message is checked. Every record must
 * be within it, and every name must be valid. The data of types that contain names or addresses must be valid as well.
 * OPT is removed. Its extended result code goes to `rcode`, and its options to `options`. Options that concern only the
 * connection to the upstream are dropped (COOKIE, KEEPALIVE, PADDING). `options` is null only if there was no OPT.
 * Owner names equal to the question become pointers to it, so that they adopt the client's spelling. Bytes after the
 * last record are cut off. The bytes are copied. A bare header (no question, no records), which some servers send with
 * FORMERR or NOTIMP, becomes a bare reply.
 * @returns ReadError (not thrown) if the message is not a reply with one question
 */
export function fromUpstream(
  bytes: Uint8Array,
  start = 0,
  end: number = bytes.length,
  plugin = 'forward',
): Reply | ReadError {
  try {
    return readReply(bytes, start, end, plugin);
  } catch (error) {
    if (error instanceof ReadError) return error;
    throw error;
  }
}

/**
 * Returns true if a reply's question matches the query's: the same type and class, and the same name except for ASCII
 * case. A bare reply has no question.
 */
export function answersQuery(reply: Reply, query: QueryMessage): boolean {
  return !reply.bare && query.isAskedAt(reply.bytes, reply.start + HEADER.SIZE, reply.end);
}

/** Results of `checkRecords`; one object per thread. */
const seen = { opt: 0, optEnd: 0, lastEnd: 0, moves: false };
/** Positions of the message's names. There is one object per thread. */
const places = new NamePlaces();

function readReply(
  bytes: Uint8Array,
  start: number,
  end: number,
  plugin: string,
): Reply | ReadError {
  if (end - start < HEADER.SIZE)
    throw new ReadError('the message is shorter than a header', end - start);
  if (end - start > MESSAGE_MAX)
    throw new ReadError(`the message is longer than ${MESSAGE_MAX} bytes`, MESSAGE_MAX);
  const flags = readUint16(bytes, start + HEADER.FLAGS);
  if ((flags & FLAG.QR) === 0)
    throw new ReadError('the message is a query, not a reply', HEADER.FLAGS);
  const questions = readUint16(bytes, start + HEADER.QDCOUNT);
  const records = count(bytes, start);
  if (questions === 0 && records === 0) return new Reply(nothing, 0, 0, flags & FLAG.RCODE, plugin);
  if (questions !== 1) throw new ReadError(`the reply has ${questions} questions`, HEADER.QDCOUNT);
  places.begin();
  const body = checkName(bytes, start, start + HEADER.SIZE, end, places) + 4;
  if (body > end)
    throw new ReadError('the message ends in the middle of the question', end - start);
  checkRecords(bytes, start, body, end, records);
  const { opt, optEnd } = seen;
  const rcode = (flags & FLAG.RCODE) | (opt === 0 ? 0 : bytes[opt + 5]! << 4);
  const reply = seen.moves
    ? rewritten(bytes, start, body, rcode, plugin)
    : copied(bytes, start, rcode, plugin);
  return reply instanceof Reply && opt !== 0
    ? reply.with({ options: passedOptions(bytes, opt + 11, optEnd) })
    : reply;
}

/** Checks all records, finds OPT, and decides whether the message has to be rewritten. */
function checkRecords(
  bytes: Uint8Array,
  start: number,
  at: number,
  end: number,
  records: number,
): void {
  const question = start + HEADER.SIZE;
  const additional = records - readUint16(bytes, start + HEADER.ARCOUNT);
  seen.opt = 0;
  seen.moves = false;
  let asked = -1;
  for (let index = 0; index < records; index++) {
    const owner = at;
    const pointsAtQuestion = bytes[at] === 0xc0 && bytes[at + 1] === HEADER.SIZE;
    // Most owners are this pointer, and its target has been checked.
    at = pointsAtQuestion && at + 2 <= end ? at + 2 : checkName(bytes, start, at, end, places);
    if (at + 10 > end)
      throw new ReadError('the message ends in the middle of a record', owner - start);
    const type = readUint16(bytes, at);
    const data = at + 10;
    at = data + readUint16(bytes, at + 8);
    if (at > end)
      throw new ReadError('the data of a record runs past the end of the message', data - start);
    if (type === TYPE.OPT) {
      if (bytes[owner] !== 0 || index < additional || seen.opt !== 0) {
        throw new ReadError(
          'OPT is not alone, not the root, or not in the additional section',
          owner - start,
        );
      }
      if (!areOptions(bytes, data, at))
        throw new ReadError('an EDNS option runs past the end of OPT', data - start);
      seen.opt = owner;
      seen.optEnd = at;
      // OPT can be cut off if it is the last record. Anywhere else, it would leave a gap.
      if (index < records - 1) seen.moves = true;
      continue;
    }
    checkData(bytes, start, data, at, type, places);
    if (!pointsAtQuestion && !seen.moves && bytes[owner] !== 0) {
      if (asked < 0) {
        names.begin(bytes, start);
        asked = names.id(question);
      }
      if (names.id(owner) === asked) seen.moves = true;
    }
  }
  // A name that overlaps other fields would change when TTLs are patched, so it has to be rewritten.
  if (places.strayed) seen.moves = true;
  seen.lastEnd = at;
}

/** Copies the message unchanged, except for an OPT record at its end. */
function copied(bytes: Uint8Array, start: number, rcode: number, plugin: string): Reply {
  const { opt, lastEnd } = seen;
  const end = opt === 0 ? lastEnd : opt;
  const begin = replySlab.put(bytes, start, end);
  if (opt !== 0) {
    const at = begin + HEADER.ARCOUNT;
    const left = readUint16(bytes, start + HEADER.ARCOUNT) - 1;
    replySlab.bytes[at] = left >> 8;
    replySlab.bytes[at + 1] = left & 0xff;
  }
  return new Reply(replySlab.bytes, begin, begin + end - start, rcode, plugin);
}

/** Rewrites the message, with owners as pointers to the question and without OPT. */
function rewritten(
  bytes: Uint8Array,
  start: number,
  body: number,
  rcode: number,
  plugin: string,
): Reply | ReadError {
  const question = start + HEADER.SIZE;
  mover.begin(bytes, start);
  for (let at = question; bytes[at] !== 0; at += bytes[at]! + 1) mover.map(at - start, at - start);
  mover.raw(bytes, question, body);
  names.begin(bytes, start);
  const asked = names.id(question);
  let at = body;
  for (let left = count(bytes, start); left > 0; left--) {
    const owner = at;
    while (bytes[at]! !== 0 && bytes[at]! < 0xc0) at += bytes[at]! + 1;
    at += bytes[at] === 0 ? 1 : 2;
    if (owner === seen.opt) {
      mover.setU16(HEADER.ARCOUNT, readUint16(bytes, start + HEADER.ARCOUNT) - 1);
    } else {
      if (names.id(owner) === asked) {
        mover.questionName();
        // Pointers to this copy of the question's name should lead to the question as well.
        let label = owner;
        for (
          let to: number = HEADER.SIZE;
          bytes[label]! !== 0 && bytes[label]! < 0xc0;
          to += bytes[to + start]! + 1
        ) {
          mover.map(label - start, to);
          label += bytes[label]! + 1;
        }
      } else {
        mover.name(owner);
      }
      mover.body(at, -1);
      if (mover.length > MESSAGE_MAX)
        return new ReadError('the message without OPT is longer than 65535 bytes', owner - start);
    }
    at += 10 + readUint16(bytes, at + 8);
  }
  const begin = replySlab.put(mover.out, 0, mover.length);
  return new Reply(replySlab.bytes, begin, begin + mover.length, rcode, plugin);
}

/** Returns the options for the client, without those that concern the connection between the upstream and ndots. */
function passedOptions(bytes: Uint8Array, at: number, end: number): Uint8Array {
  let out: Uint8Array | null = null;
  let length = 0;
  for (let next = at; at < end; at = next) {
    next = at + 4 + readUint16(bytes, at + 2);
    const code = readUint16(bytes, at);
    if (code === OPTION.COOKIE || code === OPTION.KEEPALIVE || code === OPTION.PADDING) continue;
    out ??= new Uint8Array(end - at);
    for (; at < next; at++) out[length++] = bytes[at]!;
  }
  return out === null ? nothing : out.subarray(0, length);
}

function count(bytes: Uint8Array, start: number): number {
  return (
    readUint16(bytes, start + HEADER.ANCOUNT) +
    readUint16(bytes, start + HEADER.NSCOUNT) +
    readUint16(bytes, start + HEADER.ARCOUNT)
  );
}

const nothing = new Uint8Array(0);
