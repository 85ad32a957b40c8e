/** The order of the records in a reply. */
import { copyBytes } from '../../base/copy-bytes.ts';
import { netHolds, type Net } from '../../base/ip.ts';
import type { Random } from '../../base/random.ts';
import { FLAG, HEADER, isAddressType, MESSAGE_MAX, RCODE, TYPE } from '../../wire/iana.ts';
import { mover } from '../../wire/mover.ts';
import { Records } from '../../wire/records.ts';
import { Reply } from '../../wire/reply.ts';
import { replySlab } from '../../wire/slab.ts';
import { messageNames as names } from '../../wire/message-names.ts';
import { SECTION, type Section } from '../../wire/writer.ts';
import type { Weights } from './weights.ts';

/** Groups in the order of output: aliases, everything else, addresses, and mail exchangers. */
const ALIAS = 0;
const OTHER = 1;
const ADDRESS = 2;
const EXCHANGER = 3;
/** Messages with more records are left unchanged. */
const RECORDS_MAX = 4096;
/**
 * Maximum number of records to reorder in a reply that will be truncated. No UDP reply has room for more, so the work
 * does not grow with the number of omitted records.
 */
const CUT_RECORDS_MAX = 512;
/** Replies of up to this many bytes may use a scratch buffer, which the next query overwrites. */
const SCRATCH_SIZE = 4096;

export interface ArrangerParts {
  readonly random: Random;
  readonly prefer: readonly Net[];
  /** Null for random order. */
  readonly weights: Weights | null;
}

/**
 * Reorders the records in wire-form replies, section by section. The input is never modified, because it may belong to
 * the cache. Most replies that need reordering consist of a few address records of the same size for one name, which
 * trade places in a copy. In all others (several owners, mixed sizes, MX), each record is moved separately along with
 * its compression pointers.
 */
export class Arranger {
  readonly #parts: ArrangerParts;
  /** True if every order is equally good. */
  readonly #random: boolean;
  readonly #records = new Records();
  #count = 0;
  /** Start, end, section and group of each record. */
  readonly #at = new Int32Array(RECORDS_MAX);
  readonly #end = new Int32Array(RECORDS_MAX);
  readonly #section = new Uint8Array(RECORDS_MAX);
  readonly #group = new Uint8Array(RECORDS_MAX);
  readonly #data = new Int32Array(RECORDS_MAX);
  /** The new order: the index of the record at each position. */
  readonly #order = new Int32Array(RECORDS_MAX);
  readonly #sorted = new Int32Array(RECORDS_MAX);
  /** A permutation of the records to draw from. Between draws, each record is in its own place. */
  readonly #drawn = Int32Array.from({ length: RECORDS_MAX }, (_, i) => i);
  readonly #scratch = new Uint8Array(SCRATCH_SIZE);
  readonly #scratchReplies: (Reply | undefined)[] = [];

  constructor(parts: ArrangerParts) {
    this.#parts = parts;
    this.#random = parts.weights === null && parts.prefer.length === 0;
  }

  /**
   * @param passing true if the result is sent or copied before the next reply is arranged
   * @param limit maximum number of bytes that can be sent; a longer reply may be truncated with TC
   */
  arrange(reply: Reply, qtype: number, passing: boolean, limit: number = MESSAGE_MAX): Reply {
    const { bytes, start, end } = reply;
    if (reply.rcode !== RCODE.NOERROR || start === end) return reply;
    // If none of the three counts shows a section with at least two records, there is nothing to arrange.
    if (
      (bytes[start + 7]! | bytes[start + 9]! | bytes[start + 11]!) < 2 &&
      (bytes[start + 6]! | bytes[start + 8]! | bytes[start + 10]!) === 0
    ) {
      return reply;
    }
    const cut = end - start > limit;
    if (this.#random && isAddressType(qtype)) {
      const size = alikeSize(bytes, start, end, qtype);
      if (size > 0 && cut) return this.#drawAlike(reply, size, passing, limit);
      if (size > 0) return this.#shuffleAlike(reply, size, passing);
    }
    if (qtype === TYPE.AXFR || qtype === TYPE.IXFR) return reply;
    if (!this.#scan(reply, cut ? CUT_RECORDS_MAX : RECORDS_MAX) && !cut) return reply;
    const changed = this.#reorder(reply, qtype);
    if (!changed) return reply;
    if (cut) return this.#rebuild(reply, limit);
    return this.#swappable(reply.bytes) ? this.#swap(reply, passing) : this.#rebuild(reply);
  }

  /** Draws as many addresses as will fit. Every combination and order is equally likely. */
  #drawAlike(reply: Reply, size: number, passing: boolean, limit: number): Reply {
    const { random } = this.#parts;
    const { bytes, start, answers } = reply;
    const head = reply.end - start - answers * size;
    const count = Math.max(0, Math.min(answers, Math.floor((limit - head) / size)));
    const drawn = this.#drawn;
    const changed = this.#fresh(reply, head + count * size, passing);
    const { bytes: out, start: to } = changed;
    copyBytes(bytes, start, out, to, head);
    for (let i = 0; i < count; i++) {
      const other = i + random.integer(answers - i);
      const record = drawn[other]!;
      drawn[other] = drawn[i]!;
      drawn[i] = record;
      copyBytes(bytes, start + head + record * size, out, to + head + i * size, size);
    }
    // Drawn items are either below `count` or at the old position of an item that was.
    for (let i = 0; i < count; i++) {
      const record = drawn[i]!;
      if (record >= count) drawn[record] = record;
    }
    for (let i = 0; i < count; i++) drawn[i] = i;
    setCut(out, to, SECTION.answer, count);
    return changed;
  }

  /** Shuffles the records in a message that consists of one owner's addresses, each `size` bytes long. */
  #shuffleAlike(reply: Reply, size: number, passing: boolean): Reply {
    const { random } = this.#parts;
    const { answers } = reply;
    if (answers === 2 && random.integer(2) === 0) return reply;
    const changed = this.#copy(reply, passing);
    const { bytes } = changed;
    const first = changed.end - answers * size;
    for (let left = answers; left > 1; left--) {
      const other = answers === 2 ? 0 : random.integer(left);
      if (other !== left - 1) swap(bytes, first + other * size, first + (left - 1) * size, size);
    }
    return changed;
  }

  /** Records where the first `most` records are. Returns false if there are more. */
  #scan(reply: Reply, most: number): boolean {
    const records = this.#records;
    let count = 0;
    for (records.of(reply); records.next(); count++) {
      this.#count = count;
      if (count === most) return false;
      this.#at[count] = records.ownerAt;
      this.#data[count] = records.dataAt;
      this.#end[count] = records.dataAt + records.dataLength;
      this.#section[count] = records.section;
      this.#group[count] = groupOf(records.type);
      this.#order[count] = count;
    }
    this.#count = count;
    return true;
  }

  /** Determines the new order. Returns false if it is the same as the old one. */
  #reorder(reply: Reply, qtype: number): boolean {
    const { weights } = this.#parts;
    for (let from = 0; from < this.#count;) {
      let to = from + 1;
      while (to < this.#count && this.#section[to] === this.#section[from]) to++;
      if (to - from > 1) {
        this.#regroup(from, to);
        if (weights === null) this.#shuffle(from, to, EXCHANGER);
        this.#arrangeAddresses(reply, qtype, from, to);
      }
      from = to;
    }
    const order = this.#order;
    for (let i = 0; i < this.#count; i++) if (order[i] !== i) return true;
    return false;
  }

  /** Sorts by group without changing the order within a group. A section is nearly always sorted already. */
  #regroup(from: number, to: number): void {
    const order = this.#order;
    const group = this.#group;
    let next = from + 1;
    while (next < to && group[order[next - 1]!]! <= group[order[next]!]!) next++;
    if (next === to) return;
    const sorted = this.#sorted;
    next = from;
    for (let wanted = ALIAS; wanted <= EXCHANGER; wanted++)
      for (let i = from; i < to; i++) if (group[order[i]!] === wanted) sorted[next++] = order[i]!;
    for (let i = from; i < to; i++) order[i] = sorted[i]!;
  }

  #arrangeAddresses(reply: Reply, qtype: number, from: number, to: number): void {
    const { weights, prefer } = this.#parts;
    if (weights === null) this.#shuffle(from, to, ADDRESS);
    else if (isAddressType(qtype) || qtype === TYPE.SRV) this.#raise(weights, reply, from, to);
    if (prefer.length > 0) this.#preferred(reply, from, to);
  }

  /** Shuffles the records in one group; every order is equally likely. */
  #shuffle(from: number, to: number, group: number): void {
    const order = this.#order;
    while (from < to && this.#group[order[from]!] !== group) from++;
    while (to > from && this.#group[order[to - 1]!] !== group) to--;
    for (let left = to - from; left > 1; left--) {
      const one = from + left - 1;
      const other = from + this.#parts.random.integer(left);
      const record = order[one]!;
      order[one] = order[other]!;
      order[other] = record;
    }
  }

  #raise(weights: Weights, reply: Reply, from: number, to: number): void {
    const order = this.#order;
    while (from < to && this.#group[order[from]!] !== ADDRESS) from++;
    while (to > from && this.#group[order[to - 1]!] !== ADDRESS) to--;
    if (to - from < 2) return;
    const { bytes, start } = reply;
    const drawn = weights.draw(bytes, start, this.#at[order[from]!]!, to - from, (index) => {
      const record = order[from + index]!;
      return { at: this.#data[record]!, length: this.#end[record]! - this.#data[record]! };
    });
    const top = order[from]!;
    order[from] = order[from + drawn]!;
    order[from + drawn] = top;
  }

  /** Moves addresses in preferred networks to the front, but otherwise preserves the order. */
  #preferred({ bytes }: Reply, from: number, to: number): void {
    const { prefer } = this.#parts;
    const order = this.#order;
    const group = this.#group;
    while (from < to && group[order[from]!] !== ADDRESS) from++;
    while (to > from && group[order[to - 1]!] !== ADDRESS) to--;
    const sorted = this.#sorted;
    let next = from;
    let others = 0;
    for (let i = from; i < to; i++) {
      const record = order[i]!;
      const at = this.#data[record]!;
      const length = this.#end[record]! - at;
      if (prefer.some((net) => netHolds(net, bytes, at, length))) order[next++] = record;
      else sorted[others++] = record;
    }
    for (let i = 0; i < others; i++) order[next++] = sorted[i]!;
  }

  /**
   * True if all records to move have the same size and a pointer to the same owner. They can then trade places, because
   * they contain no names, and pointers to one of their owners still lead to the same name.
   */
  #swappable(bytes: Uint8Array): boolean {
    let size = 0;
    let owner = 0;
    for (let i = 0; i < this.#count; i++) {
      if (this.#order[i] === i) continue;
      const at = this.#at[i]!;
      if (this.#group[i] !== ADDRESS || bytes[at]! < 0xc0) return false;
      const pointer = (bytes[at]! << 8) | bytes[at + 1]!;
      if (size === 0) {
        size = this.#end[i]! - at;
        owner = pointer;
      } else if (size !== this.#end[i]! - at || owner !== pointer) {
        return false;
      }
    }
    return true;
  }

  #swap(reply: Reply, passing: boolean): Reply {
    const { bytes, start } = reply;
    const changed = this.#copy(reply, passing);
    const out = changed.bytes;
    for (let i = 0; i < this.#count; i++) {
      const record = this.#order[i]!;
      if (record === i) continue;
      let write = changed.start + this.#at[i]! - start;
      const stop = this.#end[record]!;
      for (let read = this.#at[record]!; read < stop;) out[write++] = bytes[read++]!;
    }
    return changed;
  }

  /** Creates a reply with `size` unwritten bytes that is otherwise the same as this one. */
  #fresh(reply: Reply, size: number, passing: boolean): Reply {
    if (passing && size <= SCRATCH_SIZE) return this.#scratchReply(reply, size);
    const begin = replySlab.take(size);
    return reply.with({ bytes: replySlab.bytes, start: begin, end: begin + size });
  }

  /** Copies a reply so that its records can trade places, which leaves all TTL fields where they are. */
  #copy(reply: Reply, passing: boolean): Reply {
    const { bytes, start, end } = reply;
    const size = end - start;
    if (!passing || size > SCRATCH_SIZE) {
      const begin = replySlab.put(bytes, start, end);
      return reply.with({ bytes: replySlab.bytes, start: begin, end: begin + size });
    }
    const scratch = this.#scratch;
    for (let i = 0; i < size; i++) scratch[i] = bytes[start + i]!;
    return this.#scratchReply(reply, size);
  }

  /** Returns a reply in the scratch buffer. The previous reply object is reused if it is equal. */
  #scratchReply(reply: Reply, size: number): Reply {
    const last = this.#scratchReplies[size];
    if (
      last !== undefined &&
      last.rcode === reply.rcode &&
      last.plugin === reply.plugin &&
      last.ttl === reply.ttl &&
      last.ttlAt === reply.ttlAt &&
      last.options === reply.options &&
      last.errors === reply.errors &&
      last.cause === reply.cause
    )
      return last;
    return (this.#scratchReplies[size] = reply.with({ bytes: this.#scratch, start: 0, end: size }));
  }

  #rebuild(reply: Reply, limit: number = MESSAGE_MAX): Reply {
    const { bytes, start } = reply;
    const question = start + HEADER.SIZE;
    mover.begin(bytes, start);
    let at = question;
    for (; bytes[at] !== 0; at += bytes[at]! + 1) mover.map(at - start, at - start);
    mover.raw(bytes, question, at + 5);
    names.begin(bytes, start);
    const asked = names.id(question);
    const level = reply.ttlAt !== null && reply.ttl >= 0 ? reply.ttl : -1;
    const cut = limit < MESSAGE_MAX;
    for (let i = 0; i < this.#count; i++) {
      const before = mover.length;
      const record = this.#order[i]!;
      const owner = this.#at[record]!;
      if (names.id(owner) === asked) mover.questionName();
      else mover.name(owner);
      mover.body(this.#data[record]! - 10, level);
      // Names in records that were moved may need a few more bytes.
      if (mover.length <= limit) continue;
      if (!cut) return reply;
      mover.length = before;
      this.#count = i;
    }
    if (cut) this.#setCounts();
    const begin = replySlab.put(mover.out, 0, mover.length);
    const end = begin + mover.length;
    return reply.with({ bytes: replySlab.bytes, start: begin, end, ttlAt: null, ttl: -1 });
  }

  #setCounts(): void {
    for (const section of [SECTION.answer, SECTION.authority, SECTION.additional]) {
      let count = 0;
      for (let i = 0; i < this.#count; i++) if (this.#section[i] === section) count++;
      setCut(mover.out, 0, section, count);
    }
  }
}

function setCut(bytes: Uint8Array, start: number, section: Section, count: number): void {
  bytes[start + 2] = bytes[start + 2]! | (FLAG.TC >> 8);
  bytes[start + section] = count >> 8;
  bytes[start + section + 1] = count & 0xff;
}

/**
 * Returns the size of each record if the message contains nothing but answers of this address type that have the same
 * pointer as owner. Returns 0 otherwise.
 */
function alikeSize(bytes: Uint8Array, start: number, end: number, type: number): number {
  if ((bytes[start + 8]! | bytes[start + 9]! | bytes[start + 10]! | bytes[start + 11]!) !== 0)
    return 0;
  const length = type === TYPE.A ? 4 : 16;
  const size = 12 + length;
  const count = (bytes[start + 6]! << 8) | bytes[start + 7]!;
  const first = end - count * size;
  let at = start + HEADER.SIZE;
  while (at < first && bytes[at] !== 0) at += bytes[at]! + 1;
  if (at + 5 !== first) return 0;
  const high = bytes[first]!;
  const low = bytes[first + 1]!;
  if (high < 0xc0) return 0;
  for (at = first; at < end; at += size) {
    if (bytes[at] !== high || bytes[at + 1] !== low) return 0;
    if (
      bytes[at + 2] !== 0 ||
      bytes[at + 3] !== type ||
      bytes[at + 10] !== 0 ||
      bytes[at + 11] !== length
    )
      return 0;
  }
  return size;
}

function swap(bytes: Uint8Array, one: number, other: number, size: number): void {
  for (let i = 0; i < size; i++) {
    const byte = bytes[one + i]!;
    bytes[one + i] = bytes[other + i]!;
    bytes[other + i] = byte;
  }
}

function groupOf(type: number): number {
  if (isAddressType(type)) return ADDRESS;
  if (type === TYPE.CNAME) return ALIAS;
  return type === TYPE.MX ? EXCHANGER : OTHER;
}
