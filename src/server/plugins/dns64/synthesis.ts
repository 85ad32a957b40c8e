/** Replies with synthesized AAAA records. */
import { netHolds, type Net } from '../../base/ip.ts';
import { CLASS, FLAG, HEADER, MESSAGE_MAX, TYPE } from '../../wire/iana.ts';
import { mover } from '../../wire/mover.ts';
import type { Query } from '../../transport/query.ts';
import { Records } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';
import { replySlab } from '../../wire/slab.ts';
import { SECTION } from '../../wire/writer.ts';
import type { Prefix } from './prefix.ts';

/** Maximum TTL of a synthesized record in seconds if the denial has no SOA (RFC 6147 section 5.1.7). */
const TTL_WITHOUT_SOA = 600;

const records = new Records();

export interface Addresses {
  readonly counted: number;
  readonly excluded: number;
}

/**
 * Counts the addresses of `type` (A or AAAA) in the answer, with those in the `excluded` networks counted separately.
 */
export function countAddresses(reply: Reply, type: number, excluded: readonly Net[]): Addresses {
  const size = type === TYPE.A ? 4 : 16;
  const found = { counted: 0, excluded: 0 };
  for (records.of(reply); records.next() && records.section === SECTION.answer;) {
    if (records.type !== type || records.dataLength !== size) continue;
    if (isExcluded(excluded, size)) found.excluded++;
    else found.counted++;
  }
  return found;
}

function isExcluded(nets: readonly Net[], size: number): boolean {
  const { bytes, dataAt } = records;
  for (const net of nets) if (netHolds(net, bytes, dataAt, size)) return true;
  return false;
}

/** Returns the maximum TTL of a synthesized record in seconds, which is the TTL of the SOA in the AAAA denial. */
export function mostTtl(denial: Reply): number {
  let ttl = TTL_WITHOUT_SOA;
  for (records.of(denial); records.next();) {
    if (records.section === SECTION.authority && records.type === TYPE.SOA) ttl = records.ttl;
  }
  return ttl;
}

/** Returns the reply without the AAAA records in `excluded` and their signatures. */
export function withoutExcluded(reply: Reply, query: Query, excluded: readonly Net[]): Reply {
  return rewritten(reply, query, (section) => {
    if (section !== SECTION.answer) return 'move';
    if (records.type === TYPE.AAAA && isExcluded(excluded, 16)) return 'leave';
    return signs(TYPE.AAAA) ? 'leave' : 'move';
  });
}

/**
 * Builds the reply to `query` (AAAA) from `found`, the reply with the name's A records. Each address is embedded in the
 * prefix, and everything else is copied unchanged (RFC 6147 section 5.3). The synthesized addresses are unsigned, so
 * the A records' signatures are omitted and AD is cleared.
 * @param most maximum TTL of an address in seconds
 */
export function synthesise(
  found: Reply,
  query: Query,
  prefix: Prefix,
  most: number,
  excluded: readonly Net[],
): Reply {
  return rewritten(found, query, (section) => {
    if (section !== SECTION.answer) return 'move';
    if (signs(TYPE.A)) return 'leave';
    if (records.type !== TYPE.A || records.class !== CLASS.IN || records.dataLength !== 4)
      return 'move';
    if (isExcluded(excluded, 4)) return 'leave';
    mover.name(records.ownerAt);
    mover.u16(TYPE.AAAA);
    mover.u16(CLASS.IN);
    mover.u32(Math.min(records.ttl, most));
    mover.u16(16);
    prefix.write(records.bytes, records.dataAt, mover.out, mover.length);
    mover.length += 16;
    return 'done';
  });
}

/** True if the current record is a signature for records of this `type`. */
function signs(type: number): boolean {
  const { bytes, dataAt, dataLength } = records;
  if (records.type !== TYPE.RRSIG || dataLength < 2) return false;
  return ((bytes[dataAt]! << 8) | bytes[dataAt + 1]!) === type;
}

/**
 * Copies `reply`, but with the question from `query`, which has the same name. `each` decides what happens to the
 * current record.
 */
function rewritten(
  reply: Reply,
  query: Query,
  each: (section: number) => 'move' | 'leave' | 'done',
): Reply {
  const { bytes, start } = reply;
  mover.begin(bytes, start);
  const from = query.start + HEADER.SIZE;
  mover.raw(query.bytes, from, from + query.nameLength + 4);
  for (let at = 0; query.folded[at] !== 0; at += query.folded[at]! + 1)
    mover.map(HEADER.SIZE + at, HEADER.SIZE + at);
  let section: number = SECTION.answer;
  let kept = 0;
  let full = false;
  for (records.of(reply); records.next() && !full;) {
    for (; section < records.section; section += 2, kept = 0) mover.setU16(section, kept);
    const before = mover.length;
    const fate = each(section);
    if (fate === 'move') {
      mover.name(records.ownerAt);
      mover.body(records.ttlAt - 4, records.replacedTtl);
    }
    full = mover.length > MESSAGE_MAX;
    if (full) mover.length = before;
    else if (fate !== 'leave') kept++;
  }
  for (; section <= SECTION.additional; section += 2, kept = 0) mover.setU16(section, kept);
  if (full) mover.out[2] = mover.out[2]! | (FLAG.TC >> 8);
  mover.out[3] = mover.out[3]! & ~FLAG.AD;
  const begin = replySlab.put(mover.out, 0, mover.length);
  return reply.with({
    bytes: replySlab.bytes,
    start: begin,
    end: begin + mover.length,
    ttlAt: null,
    ttl: -1,
    plugin: 'dns64',
  });
}
