/**
 * Faults within a reply, for which a client may reject it or gets nothing from it: records that are
 * missing, of another name or in an order that some resolvers cannot read, endless aliases, another
 * client's cookie. Also the reason in an Extended DNS Error.
 */
import { FLAG, HEADER, OPTION, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { readable, Reader, ReadError } from '../../../server/wire/reader.ts';
import { Records } from '../../../server/wire/records.ts';
import { SECTION } from '../../../server/wire/writer.ts';
import { isCut } from '../../capture/pair/message-head.ts';
import { UDP_BYTES, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { isIterative } from './delegations.ts';
import { MIN_REASON_BYTES } from '../thresholds/errors.ts';
import { CLIENT_COOKIE_BYTES, FIRST_META_TYPE } from '../thresholds/answers.ts';

/** The faults that make a reply useless or less useful. */
export type ReplyFault =
  /** The checksum of its datagram is wrong. */
  | 'checksum'
  /** The header counts more records than the bytes hold, without TC. */
  | 'cut'
  /** An answer of another class than the question. */
  | 'class'
  /** The client's part of the COOKIE is not the one that was sent (RFC 7873 section 5.3). */
  | 'cookie'
  /** BADCOOKIE: the server does not accept the client's cookie (RFC 7873 section 5.2.3). */
  | 'bad-cookie'
  /** BADVERS: the server does not support the EDNS version (RFC 6891 section 6.1.3). */
  | 'bad-version'
  /** No record in the answer has the queried name and type. */
  | 'foreign'
  /** A CNAME record follows the records of its target. */
  | 'order'
  /** NOERROR, and the last CNAME leads to a name of which there is neither an address nor a SOA. */
  | 'endless'
  /** The aliases lead back to a name before them. */
  | 'loop'
  /** NXDOMAIN with a CNAME: the name exists, but its target does not. */
  | 'dangling'
  /** A referral: NOERROR without an answer, and with the name servers of a zone. */
  | 'referral'
  /** NOERROR without an answer and without a SOA record. */
  | 'bare'
  /** Larger over UDP than the query allows. */
  | 'oversized';

/** The content of one reply. One object is reused. */
export interface ReplyShape {
  fault: ReplyFault | null;
  /** Info code and text of the Extended DNS Error; -1: there is none. */
  reason: number;
  reasonText: string;
  /** The last target of the aliases of the question's name; empty: there is no alias. */
  target: string;
  /** The offsets of the owner of the SOA record and of its data, and of its end; 0: there is none. */
  soaOwnerAt: number;
  soaDataAt: number;
  soaEnd: number;
}

/** Aliases that are followed; more are a loop. */
const ALIASES_MAX = 24;
/** QCLASS ANY (RFC 1035 section 3.2.5). */
const ANY_CLASS = 255;
/** A pointer to the question's name, which nearly all owners are. */
const QUESTION_POINTER = 0xc000 | HEADER.SIZE;

const records = new Records();
const shape: ReplyShape = {
  ...{ fault: null, reason: -1, reasonText: '', target: '' },
  ...{ soaOwnerAt: 0, soaDataAt: 0, soaEnd: 0 },
};
const utf8 = new TextDecoder();

/**
 * Reads the reply of an exchange; null: it has none, or the capture has only the beginning of it or
 * of its query.
 */
export function replyShape(exchange: SeenExchange): ReplyShape | null {
  const { reply, logged } = exchange;
  if (reply === null || logged !== undefined || reply.length < exchange.replyBytes) return null;
  if (reply.length < HEADER.SIZE || isCut(exchange.name)) return null;
  shape.fault = null;
  shape.reason = -1;
  shape.reasonText = '';
  shape.target = '';
  shape.soaOwnerAt = 0;
  try {
    shape.fault = exchange.damaged === true ? 'checksum' : faultOf(exchange, reply);
  } catch (error) {
    if (!(error instanceof ReadError)) throw error;
    shape.fault = (exchange.replyFlags & FLAG.TC) === 0 ? 'cut' : null;
  }
  return shape;
}

function faultOf(exchange: SeenExchange, reply: Uint8Array): ReplyFault | null {
  const { type, rcode, protocol, udpSize, replyFlags } = exchange;
  const isTruncated = (replyFlags & FLAG.TC) !== 0;
  let [left, answers, authorities] = [0, 0, 0];
  for (const at of [6, 8, 10]) left += (reply[at]! << 8) | reply[at + 1]!;
  let [isChain, hasType, hasNs, isOtherClass, isOtherCookie] = [false, false, false, false, false];
  const asked = classOf(reply);
  let error = rcode;
  for (records.over(reply); records.next(); left--) {
    const { section } = records;
    if (section === SECTION.answer) {
      answers++;
      if (records.type === TYPE.CNAME || !isOfQuestion(reply)) isChain = true;
      if (records.type === type || records.type === TYPE.CNAME) hasType = true;
      if (records.type === TYPE.DNAME || type >= FIRST_META_TYPE) hasType = true;
      if (records.class !== asked && asked !== ANY_CLASS) isOtherClass = true;
    } else if (section === SECTION.authority) {
      authorities++;
      if (records.type === TYPE.NS) hasNs = true;
      if (records.type === TYPE.SOA && shape.soaOwnerAt === 0) {
        shape.soaOwnerAt = records.ownerAt;
        shape.soaDataAt = records.dataAt;
        shape.soaEnd = records.dataAt + records.dataLength;
      }
    } else if (records.type === TYPE.OPT) {
      isOtherCookie = readOptions(exchange, reply);
      // The upper bits of the error code (RFC 6891 section 6.1.3).
      error = (reply[records.ttlAt]! << 4) | rcode;
    }
  }
  if (left > 0) return isTruncated ? null : 'cut';
  if (isOtherCookie) return 'cookie';
  if (error === RCODE.BADCOOKIE) return 'bad-cookie';
  if (error === RCODE.BADVERS) return 'bad-version';
  if (isOtherClass) return 'class';
  if (isTruncated) return null;
  if (answers > 0 && !hasType && rcode === RCODE.NOERROR) return 'foreign';
  if (isChain && type < FIRST_META_TYPE) {
    const fault = chainFault(exchange, reply);
    if (fault !== null) return fault;
  }
  if (rcode === RCODE.NOERROR && answers === 0 && shape.soaOwnerAt === 0)
    // A resolver that follows delegations queries without RD and expects a referral.
    return hasNs ? (isIterative(exchange) ? null : 'referral') : authorities === 0 ? 'bare' : null;
  const most = Math.max(UDP_BYTES, udpSize);
  return protocol === 'udp' && reply.length > most ? 'oversized' : null;
}

/** The class of the question; `ANY_CLASS`: there is no question. */
function classOf(reply: Uint8Array): number {
  if (((reply[4]! << 8) | reply[5]!) === 0) return ANY_CLASS;
  const reader = new Reader(reply);
  reader.at = HEADER.SIZE;
  while (reader.left > 0 && reply[reader.at]! !== 0) {
    if (reply[reader.at]! >= 0xc0) return ANY_CLASS;
    reader.at += reply[reader.at]! + 1;
  }
  reader.at += 3;
  return reader.u16();
}

function isOfQuestion(reply: Uint8Array): boolean {
  const { ownerAt } = records;
  return ((reply[ownerAt]! << 8) | reply[ownerAt + 1]!) === QUESTION_POINTER;
}

/** The zone of the SOA record at these places, and the primary name server in it; null: neither can be read. */
export function zoneIn(
  reply: Uint8Array,
  { soaOwnerAt, soaDataAt }: ReplyShape,
): { readonly zone: string; readonly primary: string } | null {
  return readable(() => ({
    zone: nameAt(reply, soaOwnerAt),
    primary: nameAt(reply, soaDataAt),
  }));
}

export function nameAt(reply: Uint8Array, at: number): string {
  const reader = new Reader(reply);
  reader.at = at;
  return reader.name().toLowerCase();
}

/** Follows the aliases of the question's name. */
function chainFault({ name, type, rcode }: SeenExchange, reply: Uint8Array): ReplyFault | null {
  const aliases = new Map<string, string>();
  const owners: string[] = [];
  let isDelegated = false;
  for (records.over(reply); records.next() && records.section === SECTION.answer;) {
    const owner = nameAt(reply, records.ownerAt);
    if (records.type === TYPE.DNAME) isDelegated = true;
    if (records.type === TYPE.CNAME && aliases.size < ALIASES_MAX)
      aliases.set(owner, nameAt(reply, records.dataAt));
    if (records.type === type || records.type === TYPE.CNAME) owners.push(owner);
  }
  if (owners.length === 0) return null;
  const chain = [name];
  let isLoop = false;
  for (let at = name; aliases.has(at) && chain.length <= ALIASES_MAX && !isLoop;) {
    at = aliases.get(at)!;
    isLoop = chain.includes(at);
    chain.push(at);
  }
  if (chain.length === 1) return owners.includes(name) || isDelegated ? null : 'foreign';
  const last = chain.at(-1)!;
  shape.target = last;
  if (isLoop) return type === TYPE.CNAME ? null : 'loop';
  if (rcode === RCODE.NXDOMAIN) return 'dangling';
  if (rcode !== RCODE.NOERROR || type === TYPE.CNAME) return null;
  if (!owners.includes(last) || chain.length > ALIASES_MAX)
    return shape.soaOwnerAt === 0 ? 'endless' : null;
  return owners.indexOf(last) < owners.lastIndexOf(chain.at(-2)!) ? 'order' : null;
}

/** Reads the options of an OPT record. @returns whether the cookie is another client's */
function readOptions({ cookie, query }: SeenExchange, reply: Uint8Array): boolean {
  const stop = records.dataAt + records.dataLength;
  let isOther = false;
  for (let at = records.dataAt; at + 4 <= stop;) {
    const code = (reply[at]! << 8) | reply[at + 1]!;
    const length = (reply[at + 2]! << 8) | reply[at + 3]!;
    if (code === OPTION.EDE && length >= MIN_REASON_BYTES && shape.reason === -1) {
      shape.reason = (reply[at + 4]! << 8) | reply[at + 5]!;
      const end = Math.min(stop, at + 4 + length);
      shape.reasonText = utf8.decode(reply.subarray(at + 6, end)).replaceAll('\0', '');
    } else if (code === OPTION.COOKIE && cookie && length >= CLIENT_COOKIE_BYTES)
      isOther = !hasCookie(query, reply, at + 4);
    at += 4 + length;
  }
  return isOther;
}

/** True if the query has the client cookie that is at `at` in the reply. */
function hasCookie(query: Uint8Array, reply: Uint8Array, at: number): boolean {
  const cursor = new Records();
  for (cursor.over(query); cursor.next();) {
    if (cursor.type !== TYPE.OPT) continue;
    const stop = cursor.dataAt + cursor.dataLength;
    for (let option = cursor.dataAt; option + 4 + CLIENT_COOKIE_BYTES <= stop;) {
      const code = (query[option]! << 8) | query[option + 1]!;
      if (code === OPTION.COOKIE) {
        for (let i = 0; i < CLIENT_COOKIE_BYTES; i++)
          if (query[option + 4 + i] !== reply[at + i]) return false;
        return true;
      }
      option += 4 + ((query[option + 2]! << 8) | query[option + 3]!);
    }
  }
  // The capture has only the beginning of the query.
  return true;
}
