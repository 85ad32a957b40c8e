/** Caches whole signed replies, using the unsigned reply as the key. */
import { hashBytes, hashPair } from '../../base/hash.ts';
import { copyBytes } from '../../base/copy-bytes.ts';
import { HEADER } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';

/** Longer replies are assembled from cached signatures each time. */
const LONGEST = 16_384;
/** Approximate size of an entry excluding its bytes. */
const OVERHEAD = 400;

export interface SignedReply {
  readonly reply: Reply;
  readonly sets: number;
  /** Seconds since 1970 between which it may be sent. */
  readonly from: number;
  readonly until: number;
}

/** The unsigned input (question, header without ID, and records) precedes the reply's bytes in the same memory. */
interface SignedReplyEntry extends SignedReply {
  readonly size: number;
  used: boolean;
}

/**
 * Finds the signed form of a reply whose unsigned bytes equal those of an earlier one, ignoring the spelling of the
 * question. A signed answer then reads the unsigned bytes only once and allocates nothing.
 */
export class SignedReplies {
  readonly #entries = new Map<number, SignedReplyEntry>();
  readonly #maxEntries: number;
  readonly #maxBytes: number;
  bytes = 0;

  constructor(maxEntries: number, maxBytes: number) {
    this.#maxEntries = maxEntries;
    this.#maxBytes = maxBytes;
  }

  /** @param now seconds since 1970 */
  find(query: Query, reply: Reply, now: number): SignedReply | null {
    const entry = this.#entries.get(hashOf(query, reply));
    if (entry === undefined || now < entry.from || now > entry.until) return null;
    if (!isSame(entry, query, reply)) return null;
    entry.used = true;
    return entry;
  }

  /** Stores `signed` for replies like `reply`. */
  put(query: Query, reply: Reply, signed: SignedReply): void {
    if (!remembers(query, reply) || signed.reply.size > LONGEST) return;
    const hash = hashOf(query, reply);
    const own = behindUnsigned(query, reply, signed.reply);
    const size = OVERHEAD + own.bytes.length;
    this.#remove(hash);
    if (size > this.#maxBytes || this.#maxEntries === 0) return;
    while (this.#entries.size >= this.#maxEntries || this.bytes + size > this.#maxBytes)
      this.#evict();
    this.#entries.set(hash, { ...signed, reply: own, size, used: false });
    this.bytes += size;
  }

  #remove(hash: number): void {
    const entry = this.#entries.get(hash);
    if (entry === undefined) return;
    this.#entries.delete(hash);
    this.bytes -= entry.size;
  }

  #evict(): void {
    for (const [hash, entry] of this.#entries) {
      if (!entry.used) return this.#remove(hash);
      entry.used = false;
      this.#entries.delete(hash);
      this.#entries.set(hash, entry);
    }
  }
}

/** True if such a reply is likely to be repeated. Replies whose TTLs count down are not. */
function remembers({ nameLength }: Query, reply: Reply): boolean {
  return nameLength > 0 && (reply.ttl < 0 || reply.ttlAt === null);
}

function hashOf(query: Query, { bytes, start, end }: Reply): number {
  const flags = (bytes[start + 2]! << 8) | bytes[start + 3]!;
  const asked = hashPair(query.hash, (query.type << 16) | flags);
  return hashBytes(bytes, start + query.questionEnd, end, asked) & 0x3fff_ffff;
}

/** Returns how many bytes identify a reply. */
function unsignedSize({ nameLength, questionEnd }: Query, { start, end }: Reply): number {
  return nameLength + HEADER.SIZE + (end - start - questionEnd);
}

/** Copies the bytes of `signed` to just after those that identify `reply`. */
function behindUnsigned(query: Query, reply: Reply, signed: Reply): Reply {
  const { folded, nameLength, questionEnd, type } = query;
  const { bytes, start, end } = reply;
  const begin = unsignedSize(query, reply);
  const out = new Uint8Array(begin + signed.size);
  copyBytes(folded, 0, out, 0, nameLength);
  out[nameLength] = type >> 8;
  out[nameLength + 1] = type & 0xff;
  copyBytes(bytes, start + 2, out, nameLength + 2, HEADER.SIZE - 2);
  const records = nameLength + HEADER.SIZE;
  copyBytes(bytes, start + questionEnd, out, records, end - start - questionEnd);
  copyBytes(signed.bytes, signed.start, out, begin, signed.size);
  return signed.with({ bytes: out, start: begin, end: out.length });
}

function isSame({ reply }: SignedReplyEntry, query: Query, asked: Reply): boolean {
  const { folded, nameLength, questionEnd, type } = query;
  const { bytes, start, end } = asked;
  const unsigned = reply.bytes;
  if (asked.plugin !== reply.plugin || !remembers(query, asked)) return false;
  if (reply.start !== unsignedSize(query, asked)) return false;
  for (let i = 0; i < nameLength; i++) if (unsigned[i] !== folded[i]) return false;
  if (((unsigned[nameLength]! << 8) | unsigned[nameLength + 1]!) !== type) return false;
  let at = nameLength + 2;
  for (let from = start + 2; from < start + HEADER.SIZE;)
    if (unsigned[at++] !== bytes[from++]) return false;
  for (let from = start + questionEnd; from < end;)
    if (unsigned[at++] !== bytes[from++]) return false;
  return true;
}
