import { readUint32 } from '../base/big-endian.ts';
import { FLAG, HEADER, OPCODE, RCODE, TYPE } from './iana.ts';
import { messageNames as names } from './message-names.ts';
import { Records } from './records.ts';
import type { Reply } from './reply.ts';
import { SECTION } from './writer.ts';

/**
 * The kind of a reply, for a cache:
 *
 * - `answer`: NOERROR; the CNAMEs from the question lead to a record of the queried type
 * - `nodata`: NOERROR with SOA; no record of the queried type (perhaps after a CNAME)
 * - `unfinished`: NOERROR; a CNAME chain or unrelated records, with neither the queried type nor an SOA. Also,
 *   regardless of other records, conflicting CNAMEs: two targets for one owner (RFC 2181 section 10.1), or a loop
 * - `referral`: NOERROR, no answer, NS but no SOA
 * - `empty`: NOERROR, no answer, neither SOA nor NS
 * - `nxdomain`: NXDOMAIN with SOA and no answers
 * - `failure`: a message with SERVFAIL or NOTIMP
 * - `other`: everything else, which must not be stored: truncated replies, NXDOMAIN without SOA or after a CNAME, other
 *   result codes, NOTIFY, UPDATE and zone transfers, result codes without a message
 */
export type ReplyKind =
  | 'answer'
  | 'nodata'
  | 'unfinished'
  | 'referral'
  | 'empty'
  | 'nxdomain'
  | 'failure'
  | 'other';

/** Classifies `reply` as if the type in its question were `qtype`. */
export function classify(reply: Reply, qtype: number): ReplyKind {
  const flags = reply.flags;
  if (reply.bare || (flags & FLAG.TC) !== 0) return 'other';
  if ((flags & FLAG.OPCODE) >> 11 !== OPCODE.QUERY) return 'other';
  if (qtype === TYPE.AXFR || qtype === TYPE.IXFR) return 'other';
  switch (reply.rcode) {
    case RCODE.NOERROR:
      return classifySuccess(reply, qtype);
    case RCODE.NXDOMAIN:
      return reply.answers === 0 && authorityHas(reply, TYPE.SOA) ? 'nxdomain' : 'other';
    case RCODE.SERVFAIL:
    case RCODE.NOTIMP:
      return 'failure';
    default:
      return 'other';
  }
}

const records = new Records();

function classifySuccess(reply: Reply, qtype: number): ReplyKind {
  const found = reply.answers > 0 ? follow(reply, qtype) : 'nothing';
  if (found === 'type') return 'answer';
  if (found === 'contradiction') return 'unfinished';
  if (authorityHas(reply, TYPE.SOA)) return 'nodata';
  if (reply.answers > 0) return 'unfinished';
  return authorityHas(reply, TYPE.NS) ? 'referral' : 'empty';
}

function authorityHas(reply: Reply, type: number): boolean {
  if (reply.authority === 0) return false;
  for (records.of(reply); records.next();) {
    if (records.section === SECTION.additional) return false;
    if (records.section === SECTION.authority && records.type === type) return true;
  }
  return false;
}

/** Longer CNAME chains are treated as loops, because no client follows them. */
const CHAIN_MAX = 64;

/** Maps the position of an alias target to the position of its own target, or 0 if it is not an alias. */
const targets = new Map<number, number>();

/**
 * Follows the CNAMEs that start at the question's name, in any order within the answer section, and classifies the last
 * name in the chain. That name has a record of the type, nothing of that type, or conflicting CNAMEs. Other records at
 * a name with a CNAME are ignored (RFC 1034, section 3.6.2). The records are read twice, regardless of the chain's
 * length.
 */
function follow(reply: Reply, qtype: number): 'type' | 'nothing' | 'contradiction' {
  const { bytes, start } = reply;
  const question = start + HEADER.SIZE;
  // In most replies, all records belong to the question's name, as shown by a pointer.
  if (onlyQuestion(reply, qtype)) return 'type';
  names.begin(bytes, start);
  const aliases = qtype !== TYPE.ANY && qtype !== TYPE.CNAME;
  let name = names.id(question);
  if (aliases) {
    targets.clear();
    for (records.of(reply); records.next() && records.section === SECTION.answer;) {
      if (records.type !== TYPE.CNAME) continue;
      const owner = names.id(records.ownerAt);
      const target = records.dataLength === 0 ? EMPTY : names.id(records.dataAt);
      const known = targets.get(owner) ?? target;
      targets.set(owner, known === target ? target : CONTRADICTION);
    }
    let left = CHAIN_MAX;
    for (let to = targets.get(name); to !== undefined; to = targets.get(name)) {
      if (to < 0 || left-- === 0) return 'contradiction';
      name = to;
    }
  }
  let found = false;
  let target = EMPTY;
  for (records.of(reply); records.next() && records.section === SECTION.answer;) {
    if (records.type !== qtype && qtype !== TYPE.ANY) continue;
    if (names.id(records.ownerAt) !== name) continue;
    found = true;
    if (qtype !== TYPE.CNAME) break;
    if (records.dataLength === 0) return 'contradiction';
    const to = names.id(records.dataAt);
    if (target !== EMPTY && to !== target) return 'contradiction';
    target = to;
  }
  return found ? 'type' : 'nothing';
}

/** Markers for a CNAME without a target, and for a name that has several. */
const EMPTY = -1;
const CONTRADICTION = -2;

/** Returns true if each answer has the queried type, and a pointer to the question's name as its owner. */
function onlyQuestion(reply: Reply, qtype: number): boolean {
  if (qtype === TYPE.CNAME) return false;
  const { bytes } = reply;
  for (records.of(reply); records.next() && records.section === SECTION.answer;) {
    const { ownerAt, type } = records;
    if (type !== qtype || bytes[ownerAt] !== 0xc0 || bytes[ownerAt + 1] !== HEADER.SIZE)
      return false;
  }
  return true;
}

/** Returns true if any RRSIG in the reply has expired at `now`, in seconds since 1970 (RFC 4034 section 3.1.5). */
export function hasExpiredSignature(reply: Reply, now: number): boolean {
  for (records.of(reply); records.next();) {
    if (records.type !== TYPE.RRSIG || records.dataLength < 18) continue;
    const { bytes, dataAt: at } = records;
    const until = readUint32(bytes, at + 8);
    // Serial number arithmetic (RFC 1982): the sign of the 32-bit difference.
    if (((until - now) | 0) < 0) return true;
  }
  return false;
}
