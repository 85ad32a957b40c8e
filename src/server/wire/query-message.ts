/** A query's message, as a view of the bytes received. */
import { copyBytes, copyOf } from '../base/copy-bytes.ts';
import { hashMapped } from '../base/hash.ts';
import { CLASS, FLAG, HEADER, MESSAGE_MAX, OPCODE, TYPE } from './iana.ts';
import { checkData } from './layout.ts';
import { LOWER, NAME_MAX, printName, type WireName } from './name.ts';
import { areOptions } from './edns-options.ts';
import { checkName, ReadError } from './reader.ts';
import { querySlab } from './slab.ts';
import type { Protocol } from './transports.ts';
import { QuerySignature } from './tsig.ts';

/** A query's transport; `internal` if ndots created it. */
export type Proto = Protocol | 'internal';

/**
 * The treatment of a message, decided before any plugin sees it. In CoreDNS, this is the header filter in its DNS
 * library.
 */
export type Triage = 'serve' | 'ignore' | 'formerr' | 'notimp';

/**
 * Maximum size of a UDP reply unless `bufsize` changes it. Including headers, it fits into IPv6's minimum MTU, so it
 * need not be fragmented (DNS flag day 2020, RFC 9715). With a larger limit, a forged 40-byte query could send 64 KiB
 * to a victim.
 */
export const UDP_MOST = 1232;

/** A query's header, question and EDNS. One object can read many messages in turn. */
export class QueryMessage {
  /** The buffer that contains the message. It belongs to the caller of `read`. */
  bytes: Uint8Array = empty;
  /** The message is `bytes[start, end)`. */
  start = 0;
  end = 0;
  id = 0;
  /** The second header word (QR, opcode, flags) as received. */
  flags = 0;
  /** Question type and class. */
  type = 0;
  class = 0;
  /** Length of the question's name in wire form. */
  nameLength = 0;
  /** A 30-bit hash of the lower-case name, which is small enough that V8 never boxes it. */
  hash = 0;
  /** True if the query has an OPT record, whose fields follow (RFC 6891). */
  edns = false;
  ednsVersion = 0;
  /** The UDP size in the client's OPT record, unchanged. */
  udpSize = 0;
  /** The UDP size that limits the reply. This is `udpSize`, unless a plugin (`bufsize`) lowers it. */
  udpLimit = 0;
  /** Maximum size of a UDP reply, even if clients accept more. Set by `bufsize`. */
  udpMost: number = UDP_MOST;
  dnssecOk = false;
  /** EDNS options are in `bytes[optionsStart, optionsEnd)`. */
  optionsStart = 0;
  optionsEnd = 0;
  /** The TSIG record, which proves nothing until it has been verified (RFC 8945). Null if there is none. */
  signature: QuerySignature | null = null;

  proto: Proto = 'udp';
  #name: string | null = null;
  /** The name in lower case. Null for a stored copy, where it is in `bytes` at `#foldedAt`. */
  #folded: Uint8Array | null = empty;
  #foldedAt = 0;

  /**
   * Reads a message, but only the header, the first question and an OPT record.
   * @returns `serve` if the question is complete. Otherwise, the fields contain whatever could be read
   */
  read(bytes: Uint8Array, start: number, end: number): Triage {
    if (this.#folded === null || this.#folded.length < FOLDED_SIZE)
      this.#folded = new Uint8Array(FOLDED_SIZE);
    return this.#readMessage(bytes, start, end);
  }

  #readMessage(bytes: Uint8Array, start: number, end: number): Triage {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.#name = null;
    this.nameLength = 0;
    this.edns = false;
    this.ednsVersion = 0;
    this.udpSize = 0;
    this.udpLimit = 0;
    this.udpMost = UDP_MOST;
    this.dnssecOk = false;
    this.optionsStart = 0;
    this.optionsEnd = 0;
    this.type = 0;
    this.class = 0;
    this.signature = null;
    if (end - start < HEADER.SIZE) return 'ignore';
    this.id = (bytes[start]! << 8) | bytes[start + 1]!;
    const flags = (bytes[start + 2]! << 8) | bytes[start + 3]!;
    this.flags = flags;
    if ((flags & FLAG.QR) !== 0) return 'ignore';
    const opcode = (flags & FLAG.OPCODE) >> 11;
    if (opcode !== OPCODE.QUERY && opcode !== OPCODE.NOTIFY) return 'notimp';
    const questions = (bytes[start + 4]! << 8) | bytes[start + 5]!;
    const answers = (bytes[start + 6]! << 8) | bytes[start + 7]!;
    const authority = (bytes[start + 8]! << 8) | bytes[start + 9]!;
    const additional = (bytes[start + 10]! << 8) | bytes[start + 11]!;
    if (questions !== 1 || answers > 1 || authority > 1 || additional > 2) return 'formerr';
    return this.#readQuestion(answers + authority + additional, additional);
  }

  #readQuestion(records: number, additional: number): Triage {
    const { bytes, end, folded } = this;
    const name = this.start + HEADER.SIZE;
    let at = name;
    for (;;) {
      if (at >= end) return 'formerr';
      const size = bytes[at++]!;
      if (size === 0) break;
      at += size;
      // A message's first name has no earlier name that it could point to.
      if (size > 63 || at > end || at - name > NAME_MAX - 1) return 'formerr';
    }
    if (at + 4 > end) return 'formerr';
    const length = at - name;
    this.type = (bytes[at]! << 8) | bytes[at + 1]!;
    this.class = (bytes[at + 2]! << 8) | bytes[at + 3]!;
    this.nameLength = length;
    // Length bytes are below 64, so case folding leaves them unchanged.
    this.hash = hashMapped(bytes, name, length, LOWER, folded) & 0x3fffffff;
    return records === 0 ? 'serve' : this.#readRecords(at + 4, records, additional);
  }

  /** Reads the records after the question, of which there are usually none or only OPT. */
  #readRecords(at: number, records: number, additional: number): Triage {
    const { bytes, end } = this;
    if (records !== 1 || additional !== 1 || at + 11 > end || bytes[at] !== 0)
      return this.#readAll(at, records, additional);
    if (bytes[at + 1] !== 0 || bytes[at + 2] !== TYPE.OPT)
      return this.#readAll(at, records, additional);
    return this.#readOpt(at);
  }

  #readOpt(at: number): Triage {
    const { bytes, end } = this;
    const options = at + 11;
    const length = (bytes[at + 9]! << 8) | bytes[at + 10]!;
    if (options + length > end || !areOptions(bytes, options, options + length)) return 'formerr';
    this.edns = true;
    this.udpSize = (bytes[at + 3]! << 8) | bytes[at + 4]!;
    this.udpLimit = this.udpSize;
    this.ednsVersion = bytes[at + 6]!;
    this.dnssecOk = (bytes[at + 7]! & 0x80) !== 0;
    this.optionsStart = options;
    this.optionsEnd = options + length;
    return 'serve';
  }

  /**
   * Checks records other than OPT, which are rare (TSIG, or the SOA in a NOTIFY). Each must be within the message and,
   * where its type has names, they must be valid. The data is not decoded, because that could cost us far more than the
   * few bytes cost the client.
   */
  #readAll(at: number, records: number, additional: number): Triage {
    const { bytes, start, end } = this;
    let opt = 0;
    let tsig = -1;
    try {
      for (let left = records; left > 0; left--) {
        const owner = at;
        at = checkName(bytes, start, at, end);
        const data = at + 10;
        if (data > end) return 'formerr';
        const type = (bytes[at]! << 8) | bytes[at + 1]!;
        at = data + ((bytes[at + 8]! << 8) | bytes[at + 9]!);
        if (at > end) return 'formerr';
        if (type !== TYPE.OPT) {
          checkData(bytes, start, data, at, type);
          if (type !== TYPE.TSIG) continue;
          // TSIG must be the very last record (RFC 8945 section 5.1).
          if (left !== 1 || additional === 0) return 'formerr';
          tsig = owner - start;
          continue;
        }
        // OPT may occur only once, in the additional section and owned by the root.
        if (bytes[owner] !== 0 || left > additional || opt !== 0) return 'formerr';
        opt = owner;
      }
    } catch (error) {
      if (error instanceof ReadError) return 'formerr';
      throw error;
    }
    if (tsig >= 0) this.signature = new QuerySignature(copyOf(bytes, start, end), tsig);
    return opt === 0 ? 'serve' : this.#readOpt(opt);
  }

  /** The question's name in lower case and wire form. Only the first `nameLength` bytes belong to this query. */
  get folded(): Uint8Array {
    // In a stored copy, the lower-case name is a view created on first use, because a query that is only forwarded
    // never needs it.
    const at = this.#foldedAt;
    return (this.#folded ??= this.bytes.subarray(at, at + this.nameLength));
  }

  /** The question's name as text: absolute, in lower case and escaped. Created on first use. */
  get name(): string {
    return (this.#name ??= this.nameLength === 0 ? '.' : printName(this.folded));
  }

  /**
   * The question's name as spelled by the client, in wire form. It is a view that is valid for as long as the query is.
   */
  get wireName(): WireName {
    const at = this.start + HEADER.SIZE;
    return this.bytes.subarray(at, at + this.nameLength);
  }

  /**
   * Returns true if `bytes[at, end)` is this query's question: the same type and class, and the same name except for
   * ASCII case.
   */
  isAskedAt(bytes: Uint8Array, at: number, end: number): boolean {
    const { bytes: own, nameLength } = this;
    const after = at + nameLength;
    if (after + 4 > end) return false;
    const shift = this.start + HEADER.SIZE - at;
    // Length bytes are below 64, so case folding leaves them unchanged. A compressed name differs in its first byte.
    for (let i = at; i < after; i++) {
      const byte = bytes[i]!;
      const asked = own[i + shift]!;
      if (byte !== asked && LOWER[byte] !== LOWER[asked]) return false;
    }
    return (
      ((bytes[after]! << 8) | bytes[after + 1]!) === this.type &&
      ((bytes[after + 2]! << 8) | bytes[after + 3]!) === this.class
    );
  }

  /** End of the question, relative to the start of the message. */
  get questionEnd(): number {
    return HEADER.SIZE + this.nameLength + 4;
  }

  get opcode(): number {
    return (this.flags & FLAG.OPCODE) >> 11;
  }

  /**
   * True for a standard query (opcode QUERY, RFC 1035, section 4.1.1) of class IN, as nearly all queries are. Entries
   * cached only by name and type may serve only standard queries.
   */
  get isStandard(): boolean {
    return (this.flags & FLAG.OPCODE) === 0 && this.class === CLASS.IN;
  }

  /**
   * True if it has a TSIG record that this server has not verified, in which case the answer is only for its client.
   */
  get isSigned(): boolean {
    return this.signature !== null && this.signature.seal === null;
  }

  get recursionDesired(): boolean {
    return (this.flags & FLAG.RD) !== 0;
  }

  get checkingDisabled(): boolean {
    return (this.flags & FLAG.CD) !== 0;
  }

  /**
   * True if the query came over a stream. As in CoreDNS, this is the only distinction that logs and metrics make, as
   * udp and tcp.
   */
  get overStream(): boolean {
    return this.proto !== 'udp' && this.proto !== 'internal';
  }

  /**
   * Maximum size of a reply. Over UDP, this is the smaller of the client's and the server's limits, but at least 512.
   * Over streams, it is 65 535.
   */
  get limit(): number {
    const { offered, udpMost } = this;
    return this.proto === 'udp' && offered > udpMost ? udpMost : offered;
  }

  /** The client's limit, which is at least 512 over UDP, and 65 535 over streams. */
  get offered(): number {
    if (this.proto !== 'udp') return MESSAGE_MAX;
    return this.udpLimit > 512 ? this.udpLimit : 512;
  }

  /**
   * Copies the message and lower-case name of `from` into the slab for stored queries, followed by `room` bytes for the
   * caller.
   * @returns the position of those bytes
   */
  protected copyMessage(from: QueryMessage, room: number): number {
    const size = from.end - from.start;
    const start = querySlab.take(size + from.nameLength + room);
    const { bytes } = querySlab;
    copyBytes(from.bytes, from.start, bytes, start, size);
    copyBytes(from.folded, 0, bytes, start + size, from.nameLength);
    const shift = start - from.start;
    this.bytes = bytes;
    this.#folded = null;
    this.#foldedAt = start + size;
    this.start = start;
    this.end = from.end + shift;
    this.id = from.id;
    this.flags = from.flags;
    this.type = from.type;
    this.class = from.class;
    this.nameLength = from.nameLength;
    this.hash = from.hash;
    this.edns = from.edns;
    this.ednsVersion = from.ednsVersion;
    this.udpSize = from.udpSize;
    this.udpLimit = from.udpLimit;
    this.dnssecOk = from.dnssecOk;
    this.optionsStart = from.optionsStart + shift;
    this.optionsEnd = from.optionsEnd + shift;
    return start + size + from.nameLength;
  }

  /**
   * Turns this into a message in the slab for stored queries, with a different question but the id, flags and EDNS of
   * `from`. It is followed by `room` bytes for the caller.
   * @returns the position of those bytes
   */
  protected writeQuestion(
    from: QueryMessage,
    name: WireName,
    type: number,
    qclass: number,
    room: number,
  ): number {
    const options = from.edns ? from.optionsEnd - from.optionsStart : 0;
    const size = HEADER.SIZE + name.length + 4 + (from.edns ? 11 + options : 0);
    const start = querySlab.take(size + name.length + room);
    const { bytes } = querySlab;
    bytes.fill(0, start, start + size);
    bytes[start] = from.id >> 8;
    bytes[start + 1] = from.id & 0xff;
    bytes[start + 2] = from.flags >> 8;
    bytes[start + 3] = from.flags & 0xff;
    bytes[start + 5] = 1;
    copyBytes(name, 0, bytes, start + HEADER.SIZE, name.length);
    let at = start + HEADER.SIZE + name.length;
    bytes[at++] = type >> 8;
    bytes[at++] = type & 0xff;
    bytes[at++] = qclass >> 8;
    bytes[at++] = qclass & 0xff;
    if (from.edns) {
      bytes[start + HEADER.ARCOUNT + 1] = 1;
      bytes[at + 2] = TYPE.OPT;
      bytes[at + 3] = from.udpSize >> 8;
      bytes[at + 4] = from.udpSize & 0xff;
      bytes[at + 7] = from.dnssecOk ? 0x80 : 0;
      bytes[at + 9] = options >> 8;
      bytes[at + 10] = options & 0xff;
      copyBytes(from.bytes, from.optionsStart, bytes, at + 11, options);
    }
    this.#folded = bytes.subarray(start + size, start + size + name.length);
    const triage = this.#readMessage(bytes, start, start + size);
    if (triage !== 'serve') throw new Error(`cannot parse a query that was built here: ${triage}`);
    this.udpLimit = from.udpLimit;
    return start + size + name.length;
  }
}

/** The longest name, plus one length byte that is written before the name is found to be too long. */
const FOLDED_SIZE = NAME_MAX + 1;

const empty = new Uint8Array(0);

/**
 * Builds a query with RD set and without EDNS, from 127.0.0.1 with `proto` set to internal, and reads it into `into`.
 */
export function makeQueryMessage<Q extends QueryMessage>(
  into: Q,
  name: WireName,
  type: number,
  qclass = 1,
  id = 0,
): Q {
  const bytes = new Uint8Array(HEADER.SIZE + name.length + 4);
  bytes[0] = id >> 8;
  bytes[1] = id & 0xff;
  bytes[2] = FLAG.RD >> 8;
  bytes[5] = 1;
  bytes.set(name, HEADER.SIZE);
  const at = HEADER.SIZE + name.length;
  bytes[at] = type >> 8;
  bytes[at + 1] = type & 0xff;
  bytes[at + 2] = qclass >> 8;
  bytes[at + 3] = qclass & 0xff;
  const triage = into.read(bytes, 0, bytes.length);
  if (triage !== 'serve') throw new Error(`cannot parse a query that was built here: ${triage}`);
  into.proto = 'internal';
  return into;
}
