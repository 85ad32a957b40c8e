/** The last step for a reply: copies it for one client and fills in the client's own fields. */
import { copyBytes } from '../base/copy-bytes.ts';
import { FLAG, HEADER, OPTION, RCODE, TYPE } from './iana.ts';
import { isEchoed } from './edns-options.ts';
import type { QueryMessage } from './query-message.ts';
import type { Reply } from './reply.ts';
import { skipRecord } from './skip.ts';

/** Maximum size of OPT, or of the question in a reply without a message. */
const OPT_ROOM = 600;
/** Maximum size of a TSIG record: two long names, a MAC and a time. */
const SEAL_ROOM = 620;

/**
 * Maximum number of bytes that `stamp` adds to its copy of a reply, whose own size is at most `query.limit`. The output
 * buffer must have this much extra room.
 */
export const STAMP_ROOM: number = OPT_ROOM + SEAL_ROOM;

/** Number of free bytes that `stamp` requires in the output buffer. */
export function stampRoom(reply: Reply, query: QueryMessage): number {
  return Math.min(reply.end - reply.start, query.limit) + STAMP_ROOM;
}

/** Size of an OPT record without options. */
const OPT_SIZE = 11;

/**
 * Writes `reply` for the client of `query` into `out` at `at`. This is a copy of the reply's bytes, with the client's
 * own fields patched in. `out` must have `stampRoom`. Bytes that do not fit are not copied, so the cost depends on the
 * size sent, not on the reply's size.
 * @returns the length written, at most `query.limit`. Records that do not fit are dropped from the end, and TC is set
 * (RFC 2181, section 9). As in CoreDNS, TC is set even if only additional records were dropped. EDNS options are
 * omitted if they would leave no room for the question, or exceed the room for OPT
 */
export function stamp(reply: Reply, query: QueryMessage, out: Uint8Array, at: number): number {
  const questionEnd = query.nameLength === 0 ? HEADER.SIZE : query.questionEnd;
  const seal = query.signature === null ? null : query.signature.seal;
  const limit = seal === null ? query.limit : query.limit - seal.room;
  let length = questionEnd;
  let optionRoom = 0;
  let room = limit;
  if (query.edns) {
    optionRoom =
      Math.min(limit - questionEnd, OPT_ROOM - (reply.bare ? questionEnd : 0)) - OPT_SIZE;
    room -= OPT_SIZE + optionsLength(reply, query, optionRoom);
  }
  if (reply.bare) writeBare(reply, out, at);
  else if (reply.end - reply.start <= room) length = copyBody(reply, out, at, questionEnd);
  else length = copyCut(reply, out, at, room, questionEnd);
  stampHeader(reply, query, out, at);
  if (query.nameLength > 0) {
    const from = query.bytes;
    let read = query.start + HEADER.SIZE;
    for (let to = at + HEADER.SIZE, end = at + questionEnd; to < end;) out[to++] = from[read++]!;
    out[at + HEADER.QDCOUNT + 1] = 1;
  }
  const ttlAt = reply.ttlAt;
  if (ttlAt !== null && reply.ttl >= 0) stampTtls(ttlAt, reply.ttl, out, at, length);
  if (query.edns) length += writeOpt(reply, query, optionRoom, out, at + length, at);
  return seal === null ? length : seal.write(out, at, length);
}

function writeBare(reply: Reply, out: Uint8Array, at: number): void {
  for (let i = 2; i < HEADER.SIZE; i++) out[at + i] = 0;
  out[at + 2] = FLAG.QR >> 8;
  out[at + 3] = reply.rcode & FLAG.RCODE;
}

/** Copies the header and the records. The question comes from the query. */
function copyBody(reply: Reply, out: Uint8Array, at: number, questionEnd: number): number {
  const { bytes, start, end } = reply;
  const size = end - start;
  if (size > 512) {
    out.set(bytes.subarray(start, end), at);
    return size;
  }
  let to = at;
  for (let from = start, stop = start + HEADER.SIZE; from < stop;) out[to++] = bytes[from++]!;
  to = at + questionEnd;
  for (let from = start + questionEnd; from < end;) out[to++] = bytes[from++]!;
  return size;
}

/** Copies as many complete records as fit into `room` bytes, and sets TC and the counts. */
function copyCut(
  reply: Reply,
  out: Uint8Array,
  at: number,
  room: number,
  questionEnd: number,
): number {
  const { bytes, start, end } = reply;
  for (let i = 0; i < HEADER.SIZE; i++) out[at + i] = bytes[start + i]!;
  let kept = start + questionEnd;
  let full = false;
  for (let section: number = HEADER.ANCOUNT; section <= HEADER.ARCOUNT; section += 2) {
    const count = (bytes[start + section]! << 8) | bytes[start + section + 1]!;
    let taken = 0;
    while (!full && taken < count) {
      const next = skipRecord(bytes, kept, end);
      if (next - start > room) full = true;
      else {
        kept = next;
        taken++;
      }
    }
    out[at + section] = taken >> 8;
    out[at + section + 1] = taken & 0xff;
  }
  out[at + 2] = out[at + 2]! | (FLAG.TC >> 8);
  copyBytes(bytes, start + questionEnd, out, at + questionEnd, kept - start - questionEnd);
  return kept - start;
}

/**
 * Fills in the header. The id, opcode, RD and CD come from the query. AD is set only for clients that requested it (RFC
 * 6840 section 5.8).
 */
function stampHeader(reply: Reply, query: QueryMessage, out: Uint8Array, at: number): void {
  out[at] = query.id >> 8;
  out[at + 1] = query.id & 0xff;
  const high = out[at + 2]! & ~((FLAG.OPCODE | FLAG.RD) >> 8);
  out[at + 2] = high | ((query.flags & (FLAG.OPCODE | FLAG.RD)) >> 8);
  // Without EDNS, only four bits of the result code fit. A larger code becomes SERVFAIL, because its lower bits alone
  // would mean something else.
  const rcode = reply.rcode > FLAG.RCODE && !query.edns ? RCODE.SERVFAIL : reply.rcode & FLAG.RCODE;
  let low = (out[at + 3]! & ~(FLAG.CD | FLAG.RCODE)) | (query.flags & FLAG.CD) | rcode;
  if (!query.dnssecOk && (query.flags & FLAG.AD) === 0) low &= ~FLAG.AD;
  out[at + 3] = low;
}

/** @param length number of message bytes copied; TTLs after them were dropped */
function stampTtls(
  ttlAt: Uint16Array,
  ttl: number,
  out: Uint8Array,
  at: number,
  length: number,
): void {
  const b0 = (ttl >>> 24) & 0xff;
  const b1 = (ttl >>> 16) & 0xff;
  const b2 = (ttl >>> 8) & 0xff;
  const b3 = ttl & 0xff;
  for (let i = 0; i < ttlAt.length && ttlAt[i]! < length; i++) {
    const to = at + ttlAt[i]!;
    out[to] = b0;
    out[to + 1] = b1;
    out[to + 2] = b2;
    out[to + 3] = b3;
  }
}

/** Returns the length of the options that fit into `room` bytes. */
function optionsLength(reply: Reply, query: QueryMessage, room: number): number {
  if (reply.rcode === RCODE.BADVERS) return 0;
  const own = reply.options !== null ? reply.options.length : echo(query, null, 0);
  let size = own <= room ? own : 0;
  if (reply.errors !== null) {
    for (const error of reply.errors) {
      const length = 6 + utf8.encode(error.text).length;
      if (size + length <= room) size += length;
    }
  }
  return size;
}

/** Writes OPT as CoreDNS does: version 0, with the client's DO and UDP size. It is empty if the version is unknown. */
function writeOpt(
  reply: Reply,
  query: QueryMessage,
  room: number,
  out: Uint8Array,
  at: number,
  header: number,
): number {
  const begin = at;
  const spoken = reply.rcode !== RCODE.BADVERS;
  out[at++] = 0;
  out[at++] = 0;
  out[at++] = TYPE.OPT;
  out[at++] = spoken ? query.udpSize >> 8 : 0;
  out[at++] = spoken ? query.udpSize & 0xff : 0;
  out[at++] = (reply.rcode >> 4) & 0xff;
  out[at++] = 0;
  out[at++] = spoken && query.dnssecOk ? 0x80 : 0;
  out[at++] = 0;
  const lengthAt = at;
  at += 2;
  if (spoken) at += writeOptions(reply, query, room, out, at);
  const data = at - lengthAt - 2;
  out[lengthAt] = data >> 8;
  out[lengthAt + 1] = data & 0xff;
  const count = ((out[header + HEADER.ARCOUNT]! << 8) | out[header + HEADER.ARCOUNT + 1]!) + 1;
  out[header + HEADER.ARCOUNT] = count >> 8;
  out[header + HEADER.ARCOUNT + 1] = count & 0xff;
  return at - begin;
}

/**
 * Writes the reply's own options or, if there are none, an echo of the client's, and then the extended errors. Options
 * that exceed `room` are omitted.
 */
function writeOptions(
  reply: Reply,
  query: QueryMessage,
  room: number,
  out: Uint8Array,
  at: number,
): number {
  let size = 0;
  if (reply.options === null) {
    if (echo(query, null, 0) <= room) size = echo(query, out, at);
  } else if (reply.options.length <= room) {
    out.set(reply.options, at);
    size = reply.options.length;
  }
  if (reply.errors === null) return size;
  for (const error of reply.errors) {
    const text = utf8.encode(error.text);
    if (size + 6 + text.length > room) continue;
    const to = at + size;
    out[to] = 0;
    out[to + 1] = OPTION.EDE;
    out[to + 2] = (text.length + 2) >> 8;
    out[to + 3] = (text.length + 2) & 0xff;
    out[to + 4] = error.code >> 8;
    out[to + 5] = error.code & 0xff;
    out.set(text, to + 6);
    size += 6 + text.length;
  }
  return size;
}

/** Writes the client's options that are echoed unchanged. If `out` is null, only counts their bytes. */
function echo(query: QueryMessage, out: Uint8Array | null, at: number): number {
  const { bytes, optionsEnd } = query;
  let size = 0;
  for (let from = query.optionsStart; from < optionsEnd;) {
    const code = (bytes[from]! << 8) | bytes[from + 1]!;
    const length = 4 + ((bytes[from + 2]! << 8) | bytes[from + 3]!);
    if (isEchoed(code, length - 4)) {
      if (out !== null) for (let i = 0; i < length; i++) out[at + size + i] = bytes[from + i]!;
      size += length;
    }
    from += length;
  }
  return size;
}

const utf8 = new TextEncoder();

/**
 * Writes the reply to a message that no plugin sees. This is FORMERR with the question if it could be read, or NOTIMP
 * with only a header.
 * @returns the length written, which is 12 bytes, or more if the question was readable and `withQuestion` is set
 */
export function stampRejection(
  query: QueryMessage,
  rcode: number,
  withQuestion: boolean,
  out: Uint8Array,
  at: number,
): number {
  out[at] = query.id >> 8;
  out[at + 1] = query.id & 0xff;
  out[at + 2] = (FLAG.QR >> 8) | ((query.flags & (FLAG.OPCODE | FLAG.RD)) >> 8);
  out[at + 3] = (query.flags & (FLAG.AD | FLAG.CD)) | rcode;
  for (let i = HEADER.QDCOUNT; i < HEADER.SIZE; i++) out[at + i] = 0;
  if (!withQuestion || query.nameLength === 0) return HEADER.SIZE;
  out[at + HEADER.QDCOUNT + 1] = 1;
  const end = query.questionEnd;
  for (let i = HEADER.SIZE; i < end; i++) out[at + i] = query.bytes[query.start + i]!;
  return end;
}
