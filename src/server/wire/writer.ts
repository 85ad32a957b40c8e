/** Writes DNS messages. */
import { hashMapped } from '../base/hash.ts';
import { FLAG, HEADER, MESSAGE_MAX, TYPE } from './iana.ts';
import { LOWER, NAME_MAX, type WireName } from './name.ts';
import { Reply } from './reply.ts';

const SLAB_SIZE = 65536;
/** Maximum number of names that serve as compression targets. More would make a message only slightly smaller. */
const TARGETS_MAX = 128;
/** Number of hash chains for targets, by first label. It is a power of two. */
const CHAINS = 256;
/** Marks the end of a hash chain. */
const NONE = 0xff;

/** Thrown when the content does not fit into one message. */
export class MessageFull extends Error {
  override readonly name = 'MessageFull';
  constructor() {
    super(`a DNS message has at most ${MESSAGE_MAX} bytes`);
  }
}

/** Sections in message order, as the header offsets of their counts. */
export const SECTION = { answer: 6, authority: 8, additional: 10 } as const;
/** A section that contains records, as the header offset of its count. */
export type Section = (typeof SECTION)[keyof typeof SECTION];

/** The parts of a query that its reply repeats, which are the opcode and the question. */
export interface QueryHead {
  readonly flags: number;
  /** The message starts at `start` in `bytes`. Its question's name takes up `nameLength` bytes, or 0 if it has none. */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly nameLength: number;
}

/** Writes one record into the current message. */
export type WriteRecord = (to: MessageWriter) => void;

/**
 * Writes messages one after another into shared slabs, compressing names (RFC 1035 section 4.1.4). Reusable: one writer
 * per thread is enough, because a message is written without interruption. Finished bytes are never overwritten.
 */
export class MessageWriter {
  #slab = new Uint8Array(SLAB_SIZE);
  #start = 0;
  #at = 0;
  #data = 0; // offset of the open record's RDLENGTH
  #section: Section = SECTION.answer;
  /**
   * Compression targets: the offsets of names in this message, and hash chains by first label. Each chain records its
   * last target, and each target the previous one.
   */
  readonly #targets = new Uint16Array(TARGETS_MAX);
  readonly #chains = new Uint8Array(CHAINS).fill(NONE);
  readonly #before = new Uint8Array(TARGETS_MAX);
  #targetCount = 0;
  readonly #compresses: boolean;

  /** @param compresses false to write names in full, for data that is to be stored */
  constructor(compresses = true) {
    this.#compresses = compresses;
  }

  /** Begins a message with these flags (QR and the others as given) and with all counts at zero. */
  begin(id: number, flags: number): void {
    this.#start = this.#at;
    if (this.#targetCount > 0) this.#chains.fill(NONE);
    this.#targetCount = 0;
    this.#room(HEADER.SIZE);
    this.u16(id);
    this.u16(flags);
    this.u32(0);
    this.u32(0);
  }

  /** Begins a reply to `query`, with QR, the query's opcode, `flags` (AA, RA …) and its question. */
  reply(query: QueryHead, flags: number): void {
    this.begin(0, FLAG.QR | (query.flags & FLAG.OPCODE) | flags);
    if (query.nameLength === 0) return;
    this.bytes(query.bytes, query.start + HEADER.SIZE, query.nameLength + 4);
    this.#slab[this.#start + HEADER.QDCOUNT + 1] = 1;
    this.#remember(this.#start + HEADER.SIZE);
  }

  question(name: WireName, type: number, qclass: number): void {
    this.name(name);
    this.u16(type);
    this.u16(qclass);
    this.#increment(HEADER.QDCOUNT);
  }

  /**
   * Opens a record, whose data are the bytes written until `close`.
   * @param owner null for a pointer to the question's name, which adopts the client's spelling
   * @param ttl in seconds
   */
  open(section: Section, owner: WireName | null, type: number, ttl: number, rclass = 1): void {
    this.#section = section;
    if (owner === null) {
      this.#room(12);
      this.#slab[this.#at++] = 0xc0;
      this.#slab[this.#at++] = HEADER.SIZE;
    } else {
      this.name(owner);
    }
    this.#room(10);
    this.u16(type);
    this.u16(rclass);
    this.u32(ttl);
    this.#data = this.#at;
    this.u16(0);
  }

  /** Opens a record in the same way, but the owner is the name at `offset` in the message, which is at most 16383. */
  openAt(section: Section, offset: number, type: number, ttl: number): void {
    this.#section = section;
    this.#room(12);
    this.u16(0xc000 | offset);
    this.u16(type);
    this.u16(1);
    this.u32(ttl);
    this.#data = this.#at;
    this.u16(0);
  }

  /** Ends the record. Its data is everything written since `open`. */
  close(): void {
    const length = this.#at - this.#data - 2;
    this.#slab[this.#data] = length >> 8;
    this.#slab[this.#data + 1] = length & 0xff;
    this.#increment(this.#section);
  }

  /** Writes a record whose data has `length` bytes, e.g. an address. */
  record(
    section: Section,
    owner: WireName | null,
    type: number,
    ttl: number,
    data: Uint8Array,
    at = 0,
    length: number = data.length,
  ): void {
    this.open(section, owner, type, ttl);
    this.bytes(data, at, length);
    this.close();
  }

  /** Writes a record whose data is a name, such as NS or CNAME. */
  named(section: Section, owner: WireName | null, type: number, ttl: number, name: WireName): void {
    this.open(section, owner, type, ttl);
    this.name(name);
    this.close();
  }

  /** Writes the data of an SRV record. */
  srvData(priority: number, weight: number, port: number, target: WireName): void {
    this.u16(priority);
    this.u16(weight);
    this.u16(port);
    this.name(target, false);
  }

  /** @param numbers serial, refresh, retry, expire and minimum */
  soa(
    section: Section,
    owner: WireName | null,
    ttl: number,
    server: WireName,
    mailbox: WireName,
    numbers: readonly number[],
  ): void {
    this.open(section, owner, TYPE.SOA, ttl);
    this.name(server);
    this.name(mailbox);
    for (const number of numbers) this.u32(number);
    this.close();
  }

  u8(value: number): void {
    this.#room(1);
    this.#slab[this.#at++] = value;
  }

  u16(value: number): void {
    this.#room(2);
    this.#slab[this.#at++] = value >> 8;
    this.#slab[this.#at++] = value & 0xff;
  }

  u32(value: number): void {
    this.#room(4);
    this.#slab[this.#at++] = value >>> 24;
    this.#slab[this.#at++] = (value >>> 16) & 0xff;
    this.#slab[this.#at++] = (value >>> 8) & 0xff;
    this.#slab[this.#at++] = value & 0xff;
  }

  bytes(data: Uint8Array, at = 0, length: number = data.length - at): void {
    this.#room(length);
    if (length > 64) {
      this.#slab.set(data.subarray(at, at + length), this.#at);
      this.#at += length;
      return;
    }
    for (const end = at + length; at < end; at++) this.#slab[this.#at++] = data[at]!;
  }

  /**
   * Writes a name. Its longest suffix that the message already contains becomes a pointer.
   * @param compress false for types whose data must not contain pointers (RFC 3597, section 4)
   * @param from where the name starts in `name`
   */
  name(name: WireName, compress = true, from = 0): void {
    this.#room(Math.min(name.length - from, NAME_MAX));
    const begin = this.#at;
    let at = from;
    for (; name[at] !== 0; at += name[at]! + 1) {
      const target = compress && this.#compresses ? this.#find(name, at) : -1;
      if (target >= 0) {
        this.#copy(name, from, at);
        this.#slab[this.#at++] = 0xc0 | (target >> 8);
        this.#slab[this.#at++] = target & 0xff;
        if (at > from) this.#remember(begin, at - from);
        return;
      }
    }
    this.#copy(name, from, at + 1);
    this.#remember(begin);
  }

  #copy(from: Uint8Array, at: number, end: number): void {
    for (; at < end; at++) this.#slab[this.#at++] = from[at]!;
  }

  /**
   * Remembers each label in the name at `at` as a target. If the name ends in a pointer, only labels in its first
   * `span` bytes are included.
   */
  #remember(at: number, span = 256): void {
    const slab = this.#slab;
    const stop = at + span;
    while (at < stop && slab[at] !== 0 && this.#targetCount < TARGETS_MAX) {
      const offset = at - this.#start;
      if (offset > 0x3fff) return;
      const chain = chainOf(slab, at);
      this.#before[this.#targetCount] = this.#chains[chain]!;
      this.#chains[chain] = this.#targetCount;
      this.#targets[this.#targetCount++] = offset;
      at += slab[at]! + 1;
    }
  }

  /** Returns the offset in this message of a name equal to the suffix of `name` at `at`, or -1. */
  #find(name: WireName, at: number): number {
    for (let i = this.#chains[chainOf(name, at)]!; i !== NONE; i = this.#before[i]!) {
      const target = this.#targets[i]!;
      if (this.#matches(target, name, at)) return target;
    }
    return -1;
  }

  #matches(target: number, name: WireName, at: number): boolean {
    const slab = this.#slab;
    let there = this.#start + target;
    for (;;) {
      let length = slab[there]!;
      while (length >= 0xc0) {
        there = this.#start + (((length & 0x3f) << 8) | slab[there + 1]!);
        length = slab[there]!;
      }
      if (length !== name[at]) return false;
      if (length === 0) return true;
      for (let i = 1; i <= length; i++)
        if (LOWER[slab[there + i]!] !== LOWER[name[at + i]!]) return false;
      there += length + 1;
      at += length + 1;
    }
  }

  /** Sets TC, because records are missing. */
  cut(): void {
    this.#slab[this.#start + 2] = this.#slab[this.#start + 2]! | (FLAG.TC >> 8);
  }

  get length(): number {
    return this.#at - this.#start;
  }

  /** Ends a reply. The rcode in the header is set to the low bits of `rcode`. */
  finish(rcode: number, plugin: string): Reply {
    const start = this.#start;
    this.#slab[start + 3] = (this.#slab[start + 3]! & 0xf0) | (rcode & FLAG.RCODE);
    const reply = new Reply(this.#slab, start, this.#at, rcode, plugin);
    this.#start = this.#at;
    return reply;
  }

  /** Ends any message and returns a copy of its bytes. */
  take(): Uint8Array {
    const message = this.#slab.slice(this.#start, this.#at);
    this.#at = this.#start;
    return message;
  }

  /** Discards the current message, whose bytes are reused. */
  abandon(): void {
    this.#at = this.#start;
  }

  /** Increments the 16-bit count at `at` in the header. */
  #increment(at: number): void {
    const slab = this.#slab;
    at += this.#start;
    const count = ((slab[at]! << 8) | slab[at + 1]!) + 1;
    slab[at] = count >> 8;
    slab[at + 1] = count & 0xff;
  }

  /** Makes room for `size` more bytes. A message that reaches the end of its slab moves to a new one. */
  #room(size: number): void {
    const length = this.#at - this.#start;
    if (length + size > MESSAGE_MAX) {
      this.abandon();
      throw new MessageFull();
    }
    if (this.#at + size <= this.#slab.length) return;
    const larger = new Uint8Array(SLAB_SIZE);
    larger.set(this.#slab.subarray(this.#start, this.#at));
    this.#data -= this.#start;
    this.#slab = larger;
    this.#start = 0;
    this.#at = length;
  }
}

/** Returns the hash chain for names that begin with the label at `at`, ignoring case. */
function chainOf(name: Uint8Array, at: number): number {
  return hashMapped(name, at + 1, name[at]!, LOWER, folded) & (CHAINS - 1);
}

/** Scratch space for a label while it is being hashed. */
const folded = new Uint8Array(64);
