/** Joins two replies. The first ends in an alias, and the second answers for the alias's target. */
import { FLAG, HEADER, MESSAGE_MAX, RCODE, TYPE } from './iana.ts';
import { mover } from './mover.ts';
import { Records } from './records.ts';
import type { Reply } from './reply.ts';
import { replySlab } from './slab.ts';
import { SECTION, type Section } from './writer.ts';

const records = new Records();

/**
 * Returns the answers from `first`, which end in an alias, followed by those from `rest` for the alias's target. The
 * authority section comes from `first`. If `rest` denies the name or type, its authority section replaces the NS
 * records there. The result code and TC come from `rest`, and everything else from `first` (RFC 6604 section 3).
 * Records that do not fit are omitted, and TC is set.
 */
export function joinAnswers(first: Reply, rest: Reply): Reply {
  if (rest.bare) return withCode(first, rest);
  let answersEnd = first.start + HEADER.SIZE;
  const { authority } = first;
  if (authority === 0) answersEnd = first.end;
  else {
    for (records.of(first); records.next() && records.section === SECTION.answer;)
      answersEnd = records.dataAt + records.dataLength;
  }
  // Records from `first` keep their offsets, so their compression pointers remain valid.
  mover.begin(first.bytes, first.start);
  mover.raw(first.bytes, first.start + HEADER.SIZE, answersEnd);
  mover.over(rest.bytes, rest.start);
  const answers = first.answers + move(rest, SECTION.answer);
  const denies = rest.answers === 0 || rest.rcode === RCODE.NXDOMAIN;
  mover.over(first.bytes, first.start);
  let authorities = authority === 0 ? 0 : move(first, SECTION.authority, denies);
  if (denies) {
    mover.over(rest.bytes, rest.start);
    authorities += move(rest, SECTION.authority);
  }
  const cut = rest.truncated || answers < first.answers + rest.answers;
  const flags = (first.flags & ~FLAG.RCODE) | (cut ? FLAG.TC : 0) | (rest.rcode & FLAG.RCODE);
  mover.setU16(HEADER.FLAGS, flags);
  mover.setU16(HEADER.ANCOUNT, answers);
  mover.setU16(HEADER.NSCOUNT, authorities);
  mover.setU16(HEADER.ARCOUNT, 0);
  const start = replySlab.put(mover.out, 0, mover.length);
  const end = start + mover.length;
  const { rcode, errors } = rest;
  return first.with({ bytes: replySlab.bytes, start, end, rcode, errors });
}

/**
 * Copies the records in one section until the message is full.
 * @returns the number of records copied
 */
function move(reply: Reply, section: Section, withoutServers = false): number {
  let moved = 0;
  for (records.of(reply); records.next();) {
    if (records.section !== section || (withoutServers && isOfServers())) continue;
    const before = mover.length;
    mover.name(records.ownerAt);
    mover.body(records.ttlAt - 4, records.ttl);
    if (mover.length > MESSAGE_MAX) {
      mover.length = before;
      break;
    }
    moved++;
  }
  return moved;
}

/** Returns true if the current record is an NS record, or a signature over NS records. */
function isOfServers(): boolean {
  const { bytes, dataAt, type } = records;
  if (type === TYPE.NS) return true;
  return type === TYPE.RRSIG && ((bytes[dataAt]! << 8) | bytes[dataAt + 1]!) === TYPE.NS;
}

/** Returns `first` with another reply's result code and extended errors. */
function withCode(first: Reply, { rcode, errors }: Reply): Reply {
  return first.with({ rcode, errors });
}
