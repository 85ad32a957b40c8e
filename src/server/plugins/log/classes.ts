/** A reply's class, for `log` and `metadata`. */
import { OPCODE, RCODE, TYPE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { hasExpiredSignature } from '../../wire/classify.ts';
import { Records } from '../../wire/records.ts';
import { silence, type Reply } from '../../wire/reply.ts';
import { SECTION } from '../../wire/writer.ts';

/** A reply's type, as the `log/type` metadata spells it. */
export type ReplyType =
  | 'NOERROR'
  | 'NXDOMAIN'
  | 'SERVERERROR'
  | 'NODATA'
  | 'DELEGATION'
  | 'META'
  | 'OTHERERROR';

/** The words used by the `class` property and the `log/class` metadata. */
export type ReplyClass = 'success' | 'denial' | 'error';

/** The class of each reply type. */
export const classOf: Readonly<Record<ReplyType, ReplyClass>> = {
  NOERROR: 'success',
  DELEGATION: 'success',
  NXDOMAIN: 'denial',
  NODATA: 'denial',
  SERVERERROR: 'error',
  META: 'error',
  OTHERERROR: 'error',
};

const records = new Records();

/** @param nowMs wall clock time, for expired signatures */
export function typeOf(query: Query, reply: Reply, nowMs: number): ReplyType {
  if (reply === silence) return 'OTHERERROR';
  if (query.opcode === OPCODE.NOTIFY) return 'META';
  if (query.type === TYPE.AXFR || query.type === TYPE.IXFR) return 'META';
  if (query.dnssecOk && hasExpiredSignature(reply, Math.floor(nowMs / 1000))) return 'OTHERERROR';
  const { rcode } = reply;
  if (rcode === RCODE.NOERROR) return ofSuccess(reply);
  if (rcode === RCODE.NXDOMAIN) return reply.answers > 0 ? 'OTHERERROR' : 'NXDOMAIN';
  return rcode === RCODE.SERVFAIL || rcode === RCODE.NOTIMP ? 'SERVERERROR' : 'OTHERERROR';
}

function ofSuccess(reply: Reply): ReplyType {
  if (reply.answers > 0 || reply.authority === 0) return 'NOERROR';
  let delegation = false;
  for (records.of(reply); records.next() && records.section !== SECTION.additional;) {
    if (records.type === TYPE.SOA) return 'NODATA';
    if (records.type === TYPE.NS) delegation = true;
  }
  return delegation ? 'DELEGATION' : 'NOERROR';
}
