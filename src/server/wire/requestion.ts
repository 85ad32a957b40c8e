import { FLAG, HEADER, MESSAGE_MAX, TYPE } from './iana.ts';
import { messageNames as names } from './message-names.ts';
import { mover } from './mover.ts';
import { LOWER } from './name.ts';
import type { QueryMessage } from './query-message.ts';
import { Records } from './records.ts';
import { Reply } from './reply.ts';
import { replySlab } from './slab.ts';
import { answersQuery } from './upstream.ts';
import { SECTION } from './writer.ts';

/**
 * The treatment of records owned by the old question's name. `follow` changes them to the new question's name, and
 * `stay` keeps the old one.
 */
export type Owners = 'follow' | 'stay';

const records = new Records();

/**
 * Returns a copy of `reply`, which answers a different question, as a reply to `query`. All names keep their meaning,
 * although the old question that compression pointers referred to is gone. TTLs are written as they would have been
 * sent.
 * @param owners `follow` for names rewritten on the way in and back on the way out, `stay` for search paths
 * @param aliasTtl if 0 or more, the answer section begins with `QUESTION CNAME OLD-QUESTION` with this TTL, and owners
 * stay
 * @returns a bare reply unchanged. A reply that no longer fits into a message is cut, with TC
 */
export function withQuestion(
  reply: Reply,
  query: QueryMessage,
  owners: Owners = 'follow',
  aliasTtl = -1,
): Reply {
  if (reply.bare || (aliasTtl < 0 && answersQuery(reply, query))) return reply;
  const { bytes, start } = reply;
  const question = start + HEADER.SIZE;
  mover.begin(bytes, start);
  const from = query.start + HEADER.SIZE;
  mover.raw(query.bytes, from, from + query.nameLength + 4);
  mover.setU16(HEADER.QDCOUNT, 1);
  if (aliasTtl >= 0) writeAlias(question, aliasTtl);
  else mapSharedSuffix(bytes, question, query);
  const follow = owners === 'follow' && aliasTtl < 0;
  names.begin(bytes, start);
  const asked = names.id(question);
  let section: number = SECTION.answer;
  let kept = aliasTtl >= 0 ? 1 : 0;
  let full = false;
  for (records.of(reply); records.next() && !full;) {
    while (section < records.section) {
      mover.setU16(section, kept);
      section += 2;
      kept = 0;
    }
    const before = mover.length;
    if (follow && names.id(records.ownerAt) === asked) mover.questionName();
    else mover.name(records.ownerAt);
    mover.body(records.ttlAt - 4, records.replacedTtl);
    full = mover.length > MESSAGE_MAX;
    if (full) mover.length = before;
    else kept++;
  }
  for (; section <= SECTION.additional; section += 2, kept = 0) mover.setU16(section, kept);
  if (full) mover.out[2] = mover.out[2]! | (FLAG.TC >> 8);
  return finish(reply);
}

/** Write the alias. Its data is the old question's name, and all pointers to the old question lead there. */
function writeAlias(question: number, ttl: number): void {
  mover.questionName();
  mover.u16(TYPE.CNAME);
  mover.u16(1);
  mover.u32(ttl);
  const data = mover.length + 2;
  mover.length = data;
  mover.name(question);
  mover.setU16(data - 2, mover.length - data);
}

/** Makes pointers to a suffix that both questions share lead to the new question. */
function mapSharedSuffix(bytes: Uint8Array, question: number, query: QueryMessage): void {
  const { folded, nameLength } = query;
  let oldLength = 1;
  for (let at = question; bytes[at] !== 0; at += bytes[at]! + 1) oldLength += bytes[at]! + 1;
  let there = 0;
  for (let here = 0; bytes[question + here] !== 0; here += bytes[question + here]! + 1) {
    const left = oldLength - here;
    while (nameLength - there > left) there += folded[there]! + 1;
    if (nameLength - there === left && sameTail(bytes, question + here, folded, there, left)) {
      mover.map(HEADER.SIZE + here, HEADER.SIZE + there);
    }
  }
}

function sameTail(
  bytes: Uint8Array,
  at: number,
  folded: Uint8Array,
  there: number,
  length: number,
): boolean {
  for (let i = 0; i < length; i++) if (LOWER[bytes[at + i]!] !== folded[there + i]) return false;
  return true;
}

function finish(reply: Reply): Reply {
  const begin = replySlab.put(mover.out, 0, mover.length);
  const end = begin + mover.length;
  return reply.with({ bytes: replySlab.bytes, start: begin, end, ttlAt: null, ttl: -1 });
}
