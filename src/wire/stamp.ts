import { FLAG, HEADER, OPTION, TYPE } from './iana.ts';
import { isEchoed, type Query } from './query.ts';
import type { Reply } from './reply.ts';

/**
 * Writes `reply` for the client of `query` into `out` at `at`: a copy of the reply's bytes with everything that is the
 * client's own patched in. `out` must have room for the reply's size + 600 bytes.
 *
 * @returns the length written; at most `query.limit`. What does not fit is cut at a record boundary, from the end, and
 *   TC is set (RFC 2181 section 9; like CoreDNS also when only additional records were lost).
 */
export function stamp(reply: Reply, query: Query, out: Uint8Array, at: number): number {
  const questionEnd = query.nameLength === 0 ? HEADER.SIZE : query.questionEnd;
  let length = reply.bare ? writeBare(reply, out, at) : copyBody(reply, out, at, questionEnd);
  stampHeader(reply, query, out, at);
  if (query.nameLength > 0) {
    const from = query.bytes;
    let read = query.start + HEADER.SIZE;
    for (let to = at + HEADER.SIZE, end = at + questionEnd; to < end; ) out[to++] = from[read++]!;
    out[at + HEADER.QDCOUNT + 1] = 1;
    if (reply.bare) length = questionEnd;
  }
  const ttlAt = reply.ttlAt;
  if (ttlAt !== null && reply.ttl >= 0) stampTtls(ttlAt, reply.ttl, out, at);
  const optSize = query.edns ? optLength(reply, query) : 0;
  const limit = query.limit;
  if (length + optSize > limit) length = truncate(out, at, length, limit - optSize, questionEnd);
  return optSize === 0 ? length : length + writeOpt(reply, query, out, at + length, at);
}

function writeBare(reply: Reply, out: Uint8Array, at: number): number {
  for (let i = 2; i < HEADER.SIZE; i++) out[at + i] = 0;
  out[at + 2] = FLAG.QR >> 8;
  out[at + 3] = reply.rcode & FLAG.RCODE;
  return HEADER.SIZE;
}

/** Copies header and records; the question comes from the query. */
function copyBody(reply: Reply, out: Uint8Array, at: number, questionEnd: number): number {
  const { bytes, start, end } = reply;
  const size = end - start;
  if (size > 512) {
    out.set(bytes.subarray(start, end), at);
    return size;
  }
  let to = at;
  for (let from = start, stop = start + HEADER.SIZE; from < stop; ) out[to++] = bytes[from++]!;
  to = at + questionEnd;
  for (let from = start + questionEnd; from < end; ) out[to++] = bytes[from++]!;
  return size;
}

/** Id, opcode, RD and CD are the query's; AD goes only to clients that asked for it (RFC 6840 section 5.8). */
function stampHeader(reply: Reply, query: Query, out: Uint8Array, at: number): void {
  out[at] = query.id >> 8;
  out[at + 1] = query.id & 0xff;
  const high = out[at + 2]! & ~((FLAG.OPCODE | FLAG.RD) >> 8);
  out[at + 2] = high | ((query.flags & (FLAG.OPCODE | FLAG.RD)) >> 8);
  let low = (out[at + 3]! & ~(FLAG.CD | FLAG.RCODE)) | (query.flags & FLAG.CD) | (reply.rcode & FLAG.RCODE);
  if (!query.dnssecOk && (query.flags & FLAG.AD) === 0) low &= ~FLAG.AD;
  out[at + 3] = low;
}

function stampTtls(ttlAt: Uint16Array, ttl: number, out: Uint8Array, at: number): void {
  const b0 = (ttl >>> 24) & 0xff;
  const b1 = (ttl >>> 16) & 0xff;
  const b2 = (ttl >>> 8) & 0xff;
  const b3 = ttl & 0xff;
  for (let i = 0; i < ttlAt.length; i++) {
    const to = at + ttlAt[i]!;
    out[to] = b0;
    out[to + 1] = b1;
    out[to + 2] = b2;
    out[to + 3] = b3;
  }
}

/** Keeps as many whole records as fit into `room` bytes; sets TC and the counts. */
function truncate(out: Uint8Array, at: number, length: number, room: number, questionEnd: number): number {
  let kept = at + questionEnd;
  let full = false;
  for (let section: number = HEADER.ANCOUNT; section <= HEADER.ARCOUNT; section += 2) {
    const count = (out[at + section]! << 8) | out[at + section + 1]!;
    let left = 0;
    while (!full && left < count) {
      const next = skipRecord(out, kept, at + length);
      if (next - at > room) full = true;
      else {
        kept = next;
        left++;
      }
    }
    out[at + section] = left >> 8;
    out[at + section + 1] = left & 0xff;
  }
  out[at + 2] = out[at + 2]! | (FLAG.TC >> 8);
  return kept - at;
}

/** End of the record at `at`. */
export function skipRecord(bytes: Uint8Array, at: number, end: number): number {
  at = skipName(bytes, at, end) + 8;
  return at + 2 + ((bytes[at]! << 8) | bytes[at + 1]!);
}

/** End of the possibly compressed name at `at`. */
export function skipName(bytes: Uint8Array, at: number, end: number): number {
  while (at < end) {
    const size = bytes[at]!;
    if (size >= 0xc0) return at + 2;
    at += size + 1;
    if (size === 0) return at;
  }
  return end;
}

function optLength(reply: Reply, query: Query): number {
  let size = 11;
  if (reply.options !== null) size += reply.options.length;
  else if (query.optionsEnd > query.optionsStart) size += echo(query, null, 0);
  if (reply.errors !== null) for (const error of reply.errors) size += 6 + utf8.encode(error.text).length;
  return size;
}

/** OPT as CoreDNS writes it: version 0, DO and UDP size as the client sent them. */
function writeOpt(reply: Reply, query: Query, out: Uint8Array, at: number, header: number): number {
  const begin = at;
  out[at++] = 0;
  out[at++] = 0;
  out[at++] = TYPE.OPT;
  out[at++] = query.udpSize >> 8;
  out[at++] = query.udpSize & 0xff;
  out[at++] = (reply.rcode >> 4) & 0xff;
  out[at++] = 0;
  out[at++] = query.dnssecOk ? 0x80 : 0;
  out[at++] = 0;
  const lengthAt = at;
  at += 2;
  if (reply.options !== null) {
    out.set(reply.options, at);
    at += reply.options.length;
  } else if (query.optionsEnd > query.optionsStart) {
    at += echo(query, out, at);
  }
  if (reply.errors !== null) {
    for (const error of reply.errors) {
      const text = utf8.encode(error.text);
      out[at++] = 0;
      out[at++] = OPTION.EDE;
      out[at++] = (text.length + 2) >> 8;
      out[at++] = (text.length + 2) & 0xff;
      out[at++] = error.code >> 8;
      out[at++] = error.code & 0xff;
      out.set(text, at);
      at += text.length;
    }
  }
  const data = at - lengthAt - 2;
  out[lengthAt] = data >> 8;
  out[lengthAt + 1] = data & 0xff;
  const count = ((out[header + HEADER.ARCOUNT]! << 8) | out[header + HEADER.ARCOUNT + 1]!) + 1;
  out[header + HEADER.ARCOUNT] = count >> 8;
  out[header + HEADER.ARCOUNT + 1] = count & 0xff;
  return at - begin;
}

/** Copies the client's options that come back unchanged; only counts them if `out` is null. */
function echo(query: Query, out: Uint8Array | null, at: number): number {
  const { bytes, optionsEnd } = query;
  let size = 0;
  for (let from = query.optionsStart; from < optionsEnd; ) {
    const code = (bytes[from]! << 8) | bytes[from + 1]!;
    const length = 4 + ((bytes[from + 2]! << 8) | bytes[from + 3]!);
    if (isEchoed(code)) {
      if (out !== null) for (let i = 0; i < length; i++) out[at + size + i] = bytes[from + i]!;
      size += length;
    }
    from += length;
  }
  return size;
}

const utf8 = new TextEncoder();

/**
 * The reply to a message that no plugin gets to see: FORMERR with whatever question could be read, or NOTIMP with the
 * bare header.
 * @returns the length written: 12 bytes, or more if the question was readable and `withQuestion` is set.
 */
export function stampRejection(query: Query, rcode: number, withQuestion: boolean, out: Uint8Array, at: number): number {
  out[at] = query.id >> 8;
  out[at + 1] = query.id & 0xff;
  out[at + 2] = (FLAG.QR >> 8) | ((query.flags & (FLAG.OPCODE | FLAG.RD)) >> 8);
  out[at + 3] = (query.flags & FLAG.CD) | rcode;
  for (let i = HEADER.QDCOUNT; i < HEADER.SIZE; i++) out[at + i] = 0;
  if (!withQuestion || query.nameLength === 0) return HEADER.SIZE;
  out[at + HEADER.QDCOUNT + 1] = 1;
  const end = query.questionEnd;
  for (let i = HEADER.SIZE; i < end; i++) out[at + i] = query.bytes[query.start + i]!;
  return end;
}
