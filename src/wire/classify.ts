import { readUint32 } from '../base/big-endian.ts';
import { sameInMessage } from './compressed.ts';
import { FLAG, HEADER, OPCODE, RCODE, TYPE } from './iana.ts';
import { Records } from './records.ts';
import type { Reply } from './reply.ts';
import { SECTION } from './writer.ts';

/**
 * What a reply says, as far as a cache cares:
 *
 * - `answer`: NOERROR; following the CNAMEs from the question leads to a record of the asked type
 * - `nodata`: NOERROR with SOA; the asked type is not there (perhaps after a CNAME)
 * - `unfinished`: NOERROR; a CNAME chain, or unrelated records, without the asked type and without
 *   SOA; also, whatever else there is, CNAMEs that contradict each other: two targets for one owner
 *   (RFC 2181 section 10.1), or a loop
 * - `referral`: NOERROR, no answer, NS but no SOA
 * - `empty`: NOERROR, no answer, neither SOA nor NS
 * - `nxdomain`: NXDOMAIN with SOA and no answers
 * - `failure`: SERVFAIL or NOTIMP, written by someone
 * - `other`: everything else, which nobody should store: truncated, NXDOMAIN without SOA or behind
 *   a CNAME, other result codes, NOTIFY, UPDATE and zone transfers, result codes without a message
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

/** What `reply` says about its question, judged as if that question had the type `qtype`. */
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

/** Longer chains of CNAMEs count as loops: nobody follows them. */
const CHAIN_MAX = 64;

/**
 * Follows the CNAMEs that begin at the question's name, in whatever order they stand in the answer
 * section, and says what the last name of the chain has: a record of the asked type, nothing of
 * that type, or CNAMEs that contradict each other. Other records of a name that has a CNAME are
 * ignored (RFC 1034 section 3.6.2).
 */
function follow(reply: Reply, qtype: number): 'type' | 'nothing' | 'contradiction' {
  const { bytes, start } = reply;
  let name = start + HEADER.SIZE;
  for (let steps = Math.min(reply.answers, CHAIN_MAX); steps >= 0; steps--) {
    let target = 0;
    let found = false;
    for (records.of(reply); records.next() && records.section === SECTION.answer;) {
      const wanted = records.type === qtype || qtype === TYPE.ANY;
      if (!wanted && records.type !== TYPE.CNAME) continue;
      if (!sameInMessage(bytes, start, records.ownerAt, name)) continue;
      if (wanted) found = true;
      if (records.type !== TYPE.CNAME || qtype === TYPE.ANY) continue;
      if (records.dataLength === 0) return 'contradiction';
      if (target !== 0 && !sameInMessage(bytes, start, records.dataAt, target))
        return 'contradiction';
      target = records.dataAt;
    }
    if (target === 0 || qtype === TYPE.CNAME) return found ? 'type' : 'nothing';
    name = target;
  }
  return 'contradiction';
}

/**
 * Whether any RRSIG of the reply has run out at `now` (seconds since 1970; RFC 4034 section 3.1.5).
 */
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
