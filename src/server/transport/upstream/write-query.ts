/** Writes queries in the form sent to upstreams. */
import { copyBytes } from '../../base/copy-bytes.ts';
import { FLAG, HEADER, OPCODE, TYPE } from '../../wire/iana.ts';
import type { Query } from '../query.ts';

/**
 * UDP size in rewritten queries. A reply of this size passes nearly every path unfragmented (DNS flag day 2020). Larger
 * replies use TCP.
 */
const UDP_SIZE = 1232;
/** Size of an OPT record without options. */
const OPT_SIZE = 11;
/** The flags that are meaningful in queries. */
const QUERY_FLAGS = FLAG.OPCODE | FLAG.RD | FLAG.AD | FLAG.CD;

const none = new Uint8Array(0);

/**
 * Rewrites a client's query into our own form for the upstream, without the client's EDNS options. COOKIE,
 * TCP-KEEPALIVE and PADDING apply to a single hop (RFC 7873, 7828, 7830). With Client Subnet or an unknown option, the
 * answer would be valid only for that client. Other opcodes, and queries signed for the upstream (RFC 8945, section
 * 5.5), are left unchanged.
 */
export function sendAsOurs(query: Query): void {
  if (query.upstreamOptions === null && query.opcode === OPCODE.QUERY && !query.isSigned)
    query.upstreamOptions = none;
}

/** Returns the flags to use when a query is sent to an upstream. */
export function flagsUpstream(query: Query): number {
  const flags = query.flags | query.upstreamFlags;
  return query.upstreamOptions === null ? flags : flags & QUERY_FLAGS;
}

/** Returns the number of bytes that `writeQuery` writes. */
export function sizeUpstream(query: Query): number {
  const options = query.upstreamOptions;
  if (options === null) return query.end - query.start;
  return query.questionEnd + (query.edns ? OPT_SIZE + options.length : 0);
}

/**
 * Writes the query with a new id in the form that is sent to an upstream. This is the query's bytes with its current
 * flags and `upstreamFlags`. If `upstreamOptions` is set, it is the query's question and our own OPT record.
 * @returns the length
 */
export function writeQuery(query: Query, id: number, out: Uint8Array, at: number): number {
  const options = query.upstreamOptions;
  const size = sizeUpstream(query);
  copyBytes(query.bytes, query.start, out, at, options === null ? size : query.questionEnd);
  out[at] = id >> 8;
  out[at + 1] = id & 0xff;
  const flags = flagsUpstream(query);
  out[at + 2] = flags >> 8;
  out[at + 3] = flags & 0xff;
  if (options === null) return size;
  for (let i = at + HEADER.ANCOUNT; i < at + HEADER.SIZE; i++) out[i] = 0;
  if (!query.edns) return size;
  out[at + HEADER.ARCOUNT + 1] = 1;
  const opt = at + query.questionEnd;
  for (let i = opt; i < opt + OPT_SIZE; i++) out[i] = 0;
  out[opt + 2] = TYPE.OPT;
  out[opt + 3] = UDP_SIZE >> 8;
  out[opt + 4] = UDP_SIZE & 0xff;
  out[opt + 7] = query.dnssecOk ? 0x80 : 0;
  out[opt + 9] = options.length >> 8;
  out[opt + 10] = options.length & 0xff;
  copyBytes(options, 0, out, opt + OPT_SIZE, options.length);
  return size;
}
