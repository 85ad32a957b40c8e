import { readUint32 } from '../base/big-endian.ts';
import { HEADER } from './iana.ts';
import type { WireName } from './name.ts';
import { Reader } from './reader.ts';
import type { Reply } from './reply.ts';
import { skipName } from './skip.ts';
import { SECTION, type Section } from './writer.ts';

/**
 * A cursor over a message's records that creates no objects. It is reusable: `over` or `of` starts it, `next` advances
 * it, and the fields describe the current record. All positions are indexes into `bytes`, not offsets from the start of
 * the message.
 *
 * ```ts
 * for (records.of(reply); records.next(); ) if (records.type === TYPE.A) …
 * ```
 */
export class Records {
  bytes: Uint8Array = new Uint8Array(0);
  start = 0;
  end = 0;
  section: Section = SECTION.answer;
  /** Position of the owner name, which may be compressed. */
  ownerAt = 0;
  type = 0;
  class = 0;
  /** Position of the TTL. `Reply.ttlAt` contains `ttlAt - start`. */
  ttlAt = 0;
  dataAt = 0;
  dataLength = 0;

  #at = 0;
  #left = 0;
  #reply: Reply | null = null;
  /** Index in `reply.ttlAt` of the next TTL to replace. The offsets there are in ascending order. */
  #ttlIndex = 0;

  /** Starts at the first record in a complete message. */
  over(bytes: Uint8Array, start = 0, end: number = bytes.length): this {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.#reply = null;
    this.#ttlIndex = 0;
    this.section = SECTION.answer;
    this.#left = end - start < HEADER.SIZE ? 0 : this.#count(SECTION.answer);
    this.#at = start + HEADER.SIZE;
    if (end - start < HEADER.SIZE) {
      this.section = SECTION.additional;
      return this;
    }
    for (
      let questions = this.#count(HEADER.QDCOUNT);
      questions > 0 && this.#at < end;
      questions--
    ) {
      this.#at = skipName(bytes, this.#at, end) + 4;
    }
    return this;
  }

  /** Starts at the first record in a reply. A bare reply has none. */
  of(reply: Reply): this {
    this.over(reply.bytes, reply.start, reply.end);
    this.#reply = reply;
    return this;
  }

  /** Advances to the next record. Returns false after the last one. */
  next(): boolean {
    while (this.#left === 0) {
      if (this.section === SECTION.additional) return false;
      this.section = this.section === SECTION.answer ? SECTION.authority : SECTION.additional;
      this.#left = this.#count(this.section);
    }
    this.#left--;
    const { bytes, end } = this;
    const at = skipName(bytes, this.#at, end);
    if (at + 10 > end) return this.#stop();
    this.ownerAt = this.#at;
    this.type = (bytes[at]! << 8) | bytes[at + 1]!;
    this.class = (bytes[at + 2]! << 8) | bytes[at + 3]!;
    this.ttlAt = at + 4;
    this.dataLength = (bytes[at + 8]! << 8) | bytes[at + 9]!;
    this.dataAt = at + 10;
    this.#at = this.dataAt + this.dataLength;
    return this.#at <= end || this.#stop();
  }

  /** The TTL that is sent for this record, in seconds. This is `Reply.ttl` where it replaces the stored TTL. */
  get ttl(): number {
    const replaced = this.replacedTtl;
    return replaced >= 0 ? replaced : this.writtenTtl;
  }

  /** The value of `Reply.ttl`, in seconds, if it replaces this record's TTL. Otherwise -1. */
  get replacedTtl(): number {
    const reply = this.#reply;
    if (reply === null || reply.ttl < 0 || reply.ttlAt === null) return -1;
    const { ttlAt } = reply;
    const here = this.ttlAt - this.start;
    while (this.#ttlIndex < ttlAt.length && ttlAt[this.#ttlIndex]! < here) this.#ttlIndex++;
    return ttlAt[this.#ttlIndex] === here ? reply.ttl : -1;
  }

  /** The stored TTL in seconds. If its top bit is set, it counts as 0 (RFC 2181 section 8). */
  get writtenTtl(): number {
    return readTtl(this.bytes, this.ttlAt);
  }

  /** A copy of the owner name, decompressed and in wire form. */
  get owner(): WireName {
    return expandName(this.bytes, this.start, this.ownerAt);
  }

  /** The data as a view. Any names in it may be compressed. */
  get data(): Uint8Array {
    return this.bytes.subarray(this.dataAt, this.dataAt + this.dataLength);
  }

  #count(at: number): number {
    return (this.bytes[this.start + at]! << 8) | this.bytes[this.start + at + 1]!;
  }

  /** Ends the iteration at a record that extends past the end of the message. */
  #stop(): false {
    this.section = SECTION.additional;
    this.#left = 0;
    return false;
  }
}

/** Reads the TTL at `at`, in seconds. If its top bit is set, it counts as 0 (RFC 2181 section 8). */
export function readTtl(bytes: Uint8Array, at: number): number {
  return bytes[at]! >= 0x80 ? 0 : readUint32(bytes, at);
}

/**
 * Returns a copy of the name at `at`, decompressed and in wire form.
 * @throws ReadError
 */
export function expandName(bytes: Uint8Array, start: number, at: number): WireName {
  const reader = new Reader(bytes, start, bytes.length);
  reader.at = at;
  return reader.wireName();
}
