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

/** The transport a query came by; `internal` if ndots made it itself. */
export type Proto = Protocol | 'internal';

/** Records how one query passes through the links of the chain (for tracing). */
export interface LinkRecorder {
  /**
   * The query enters a link; links entered before it leaves this one are nested in it.
   * @returns the handle for `left` and `done`
   */
  entered(link: string): number;
  /** The link has returned, with its reply or with a promise of one. */
  left(span: number): void;
  /** The link's reply is there. */
  done(span: number): void;
}

/**
 * What to do with a message, decided before any plugin sees it (in CoreDNS: the header filter of
 * its DNS library).
 */
export type Triage = 'serve' | 'ignore' | 'formerr' | 'notimp';

/**
 * Which listener, server block and zone a query belongs to: the label values of most metrics. One
 * object per combination.
 */
export interface Route {
  /** A small number, counted from 0 without gaps: an index for tables. */
  readonly index: number;
  /** Listen address with scheme, e.g. `dns://:53`. */
  readonly server: string;
  /** The server block's zone that matched, e.g. `cluster.local.`. */
  readonly zone: string;
  /** Name of the view, or empty. */
  readonly view: string;
}

/**
 * The longest reply over UDP unless `bufsize` says otherwise: with headers it fits into the least
 * MTU of IPv6, so nothing on the way has to fragment it (DNS flag day 2020, RFC 9715). A larger
 * limit would also let a forged query of 40 bytes send 64 KiB to a victim.
 */
export const UDP_MOST = 1232;

/**
 * Value of a query's `screen` when its name was rewritten for a lookup that only contributes to a
 * reply.
 */
export const renamed: object = {};

/**
 * One query: a view over the bytes it came in. A listener reuses one object for many queries, so
 * code that still needs the query after the chain has returned (because a promise is pending) must
 * work on the copy that `keep()` returns.
 */
export class Query {
  /** The buffer that holds the message; it belongs to the listener until `keep()` copies it. */
  bytes: Uint8Array = empty;
  /** The message is `bytes[start, end)`. */
  start = 0;
  end = 0;
  id = 0;
  /** The second header word (QR, opcode, flags) as received. */
  flags = 0;
  /** Flags that are set in addition when the query is sent upstream. */
  upstreamFlags = 0;
  /**
   * The EDNS options with which this query is sent upstream, in wire form, in place of its own; it
   * is then sent without further records and with a UDP size of ours. Null: it is sent as it came.
   */
  upstreamOptions: Uint8Array | null = null;
  /** Question type and class. */
  type = 0;
  class = 0;
  /**
   * The result code of a message that plugins must not see (NOTIMP, FORMERR); 0 for a proper query.
   */
  rejection = 0;
  /** Length of the question's name in wire form. */
  nameLength = 0;
  /** A 30-bit hash of the lower-case name: small enough that V8 never boxes it. */
  hash = 0;
  /** Whether the query has an OPT record, and what it says (RFC 6891). */
  edns = false;
  ednsVersion = 0;
  /** The UDP size in the client's OPT record, unchanged. */
  udpSize = 0;
  /** The UDP size that limits the reply: `udpSize`, unless a plugin (`bufsize`) lowers it. */
  udpLimit = 0;
  /** What the server sends over UDP at most, whatever clients offer; `bufsize` sets it. */
  udpMost: number = UDP_MOST;
  dnssecOk = false;
  /** EDNS options lie in `bytes[optionsStart, optionsEnd)`. */
  optionsStart = 0;
  optionsEnd = 0;
  /**
   * The TSIG record; it proves nothing until it has been verified (RFC 8945). Null if there is
   * none.
   */
  signature: QuerySignature | null = null;

  proto: Proto = 'udp';
  family: 4 | 6 = 4;
  /** The client's address in network order: `peer[peerAt, peerAt + 4 or 16)`. */
  peer: Uint8Array = loopback;
  peerAt = 0;
  peerPort = 0;
  /** The address and port the query was sent to, as text; set by the listener. */
  local = '';
  localPort = 0;
  /** When the query arrived: milliseconds of the monotonic clock. */
  arrived = 0;
  route: Route = noRoute;
  /**
   * The route of the client's query, if this query was made on the way to that one's reply (`depth`
   * > 0).
   */
  via: Route = noRoute;
  /** What `metadata` collected, by label; null without the plugin. */
  notes: Map<string, string> | null = null;
  /**
   * Records each link of the chain that this query enters; null for nearly all queries, which are
   * not traced.
   */
  recorder: LinkRecorder | null = null;
  /**
   * Whether one more query may wait for its reply; if not, a link that would have to wait returns
   * `overloaded`.
   */
  mayWait = true;
  /**
   * Set if a plugin in front will inspect the whole reply before the client gets it, so that
   * lookups that only contribute parts of it need no inspection of their own. Null: no plugin does.
   * `renamed`: a plugin does, but the name that is looked up here will not appear in the reply.
   */
  screen: object | null = null;
  /** How many internal lookups led to this query (CNAME targets); bounds loops. */
  depth = 0;
  /**
   * Counts all internal lookups made for one client query, which bounds those that branch. Null:
   * there were none yet.
   */
  lookups: { count: number } | null = null;

  #name: string | null = null;
  /**
   * The name in lower case; null for a kept copy, where it stands in `bytes` from `#foldedAt` on.
   */
  #folded: Uint8Array | null = empty;
  #foldedAt = 0;
  #owned = false;
  #kept: Query | null = null;

  /**
   * Reads a message. Only the header, the first question and an OPT record are looked at.
   * @returns `serve` when the question is whole; otherwise what to do instead. Fields hold what
   * could be read.
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
    this.#owned = false;
    this.#kept = null;
    this.upstreamFlags = 0;
    this.upstreamOptions = null;
    this.rejection = 0;
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
    this.via = noRoute;
    this.notes = null;
    this.recorder = null;
    this.mayWait = true;
    this.screen = null;
    this.depth = 0;
    this.lookups = null;
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
      // The first name of a message has nothing before it to point at.
      if (size > 63 || at > end || at - name > NAME_MAX - 1) return 'formerr';
    }
    if (at + 4 > end) return 'formerr';
    const length = at - name;
    this.type = (bytes[at]! << 8) | bytes[at + 1]!;
    this.class = (bytes[at + 2]! << 8) | bytes[at + 3]!;
    this.nameLength = length;
    // Length bytes are below 64, so folding case does not touch them.
    this.hash = hashMapped(bytes, name, length, LOWER, folded) & 0x3fffffff;
    return records === 0 ? 'serve' : this.#readRecords(at + 4, records, additional);
  }

  /** Reads the records that follow the question: as a rule nothing, or OPT alone. */
  #readRecords(at: number, records: number, additional: number): Triage {
    const { bytes, end } = this;
    if (records !== 1 || additional !== 1 || at + 11 > end || bytes[at] !== 0)
      return this.#readAll(at, records, additional);
    if (bytes[at + 1] !== 0 || bytes[at + 2] !== TYPE.OPT)
      return this.#readAll(at, records, additional);
    return this.#readOpt(at);
  }

  /** Reads the OPT record at `at`. */
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
   * Checks records other than OPT, which are rare (TSIG, the SOA of a NOTIFY): each must lie within
   * the message and have legal names where its type has names. Their data is not decoded: that
   * could cost far more than the few bytes cost the client.
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
          // TSIG must be the last of all records (RFC 8945 section 5.1).
          if (left !== 1 || additional === 0) return 'formerr';
          tsig = owner - start;
          continue;
        }
        // OPT may occur once, owned by the root, in the additional section.
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

  /**
   * The question's name in lower case, wire form; only the first `nameLength` bytes are of this
   * query.
   */
  get folded(): Uint8Array {
    // In a kept copy the lower-case name is a view made on first use: a query that is only
    // forwarded never needs it.
    const at = this.#foldedAt;
    return (this.#folded ??= this.bytes.subarray(at, at + this.nameLength));
  }

  /** The question's name as text: absolute, lower case, escaped. Built on first use. */
  get name(): string {
    return (this.#name ??= this.nameLength === 0 ? '.' : printName(this.folded));
  }

  /**
   * The question's name in the client's spelling, wire form (a view: valid as long as the query).
   */
  get wireName(): WireName {
    const at = this.start + HEADER.SIZE;
    return this.bytes.subarray(at, at + this.nameLength);
  }

  /**
   * Whether this query's question stands in `bytes[at, end)`: type, class, and name but for ASCII
   * case.
   */
  isAskedAt(bytes: Uint8Array, at: number, end: number): boolean {
    const { bytes: own, nameLength } = this;
    const after = at + nameLength;
    if (after + 4 > end) return false;
    const shift = this.start + HEADER.SIZE - at;
    // Length bytes are below 64, so folding case does not touch them; a compressed name already
    // differs in its first byte.
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

  /** Where the question ends, relative to the message's start. */
  get questionEnd(): number {
    return HEADER.SIZE + this.nameLength + 4;
  }

  get opcode(): number {
    return (this.flags & FLAG.OPCODE) >> 11;
  }

  /**
   * Whether this is a standard query (opcode QUERY, RFC 1035 section 4.1.1) of class IN, as nearly
   * all are. What is remembered by name and type alone may be remembered for standard queries only.
   */
  get isStandard(): boolean {
    return (this.flags & FLAG.OPCODE) === 0 && this.class === CLASS.IN;
  }

  /** Whether it has a TSIG record that nobody here has verified: the answer is for its client. */
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
   * Whether the query came over a stream. Logs and metrics tell transports apart only by this;
   * CoreDNS calls them udp and tcp.
   */
  get overStream(): boolean {
    return this.proto !== 'udp' && this.proto !== 'internal';
  }

  /**
   * The maximum size of a reply: over UDP what the client offered and the server sends, at least
   * 512; over streams 65 535.
   */
  get limit(): number {
    const { offered, udpMost } = this;
    return this.proto === 'udp' && offered > udpMost ? udpMost : offered;
  }

  /** What the client can take: over UDP at least 512, over streams 65 535. */
  get offered(): number {
    if (this.proto !== 'udp') return MESSAGE_MAX;
    return this.udpLimit > 512 ? this.udpLimit : 512;
  }

  /** Whether this query stays valid after the chain has returned. */
  get owned(): boolean {
    return this.#owned;
  }

  /**
   * This query if it owns its bytes, else a copy that does. Repeated calls return the same copy as
   * long as the query is unchanged.
   */
  keep(): Query {
    if (this.#owned) return this;
    const kept = this.#kept;
    return kept !== null && this.#isAsKept(kept) ? kept : (this.#kept = this.copy());
  }

  /** A new copy that owns its bytes and is shared with nobody. */
  copy(): Query {
    const copy = new Query();
    copy.#copyFrom(this);
    return copy;
  }

  /** Whether the fields that plugins may change are still as they were when `kept` was made. */
  #isAsKept(kept: Query): boolean {
    return (
      kept.flags === this.flags &&
      kept.upstreamFlags === this.upstreamFlags &&
      kept.udpLimit === this.udpLimit &&
      kept.udpMost === this.udpMost &&
      kept.notes === this.notes &&
      kept.mayWait === this.mayWait &&
      kept.screen === this.screen &&
      kept.recorder === this.recorder
    );
  }

  /**
   * Copies message, lower-case name and client address, one after the other, into the slab of kept
   * queries.
   */
  #copyFrom(from: Query): void {
    const size = from.end - from.start;
    const start = querySlab.take(size + from.nameLength + PEER_SIZE);
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
    this.#copyPeer(from, start + size + from.nameLength);
    this.#owned = true;
  }

  /** Copies the client's address to `at` of the slab that holds this query's message. */
  #copyPeer(from: Query, at: number): void {
    copyBytes(from.peer, from.peerAt, this.bytes, at, from.family === 4 ? 4 : PEER_SIZE);
    this.askFor(from);
    this.peer = this.bytes;
    this.peerAt = at;
  }

  /**
   * Takes over the client of `from` and everything known about it, for a query that is made to be
   * asked in its place. The address is not copied, and the client's EDNS sizes are not taken over.
   */
  askFor(from: Query): void {
    this.upstreamFlags = from.upstreamFlags;
    this.upstreamOptions = from.upstreamOptions;
    this.signature = from.signature;
    this.udpMost = from.udpMost;
    this.proto = from.proto;
    this.family = from.family;
    this.peer = from.peer;
    this.peerAt = from.peerAt;
    this.peerPort = from.peerPort;
    this.local = from.local;
    this.localPort = from.localPort;
    this.arrived = from.arrived;
    this.route = from.route;
    this.via = from.via;
    this.notes = from.notes;
    this.recorder = from.recorder;
    this.mayWait = from.mayWait;
    this.screen = from.screen;
    this.depth = from.depth;
    this.lookups = from.lookups;
  }

  /**
   * A new, owned query of the same client with another question: for rewrites, search paths, CNAME
   * targets. Flags and EDNS (size, DO, options) are carried along.
   */
  asking(name: WireName, type: number = this.type, qclass: number = this.class): Query {
    // Both this query and its follow-up count in the same object, also if this one asks several
    // follow-ups.
    this.lookups ??= { count: 0 };
    const options = this.edns ? this.optionsEnd - this.optionsStart : 0;
    const size = HEADER.SIZE + name.length + 4 + (this.edns ? 11 + options : 0);
    const start = querySlab.take(size + name.length + PEER_SIZE);
    const { bytes } = querySlab;
    bytes.fill(0, start, start + size);
    bytes[start] = this.id >> 8;
    bytes[start + 1] = this.id & 0xff;
    bytes[start + 2] = this.flags >> 8;
    bytes[start + 3] = this.flags & 0xff;
    bytes[start + 5] = 1;
    copyBytes(name, 0, bytes, start + HEADER.SIZE, name.length);
    let at = start + HEADER.SIZE + name.length;
    bytes[at++] = type >> 8;
    bytes[at++] = type & 0xff;
    bytes[at++] = qclass >> 8;
    bytes[at++] = qclass & 0xff;
    if (this.edns) {
      bytes[start + HEADER.ARCOUNT + 1] = 1;
      bytes[at + 2] = TYPE.OPT;
      bytes[at + 3] = this.udpSize >> 8;
      bytes[at + 4] = this.udpSize & 0xff;
      bytes[at + 7] = this.dnssecOk ? 0x80 : 0;
      bytes[at + 9] = options >> 8;
      bytes[at + 10] = options & 0xff;
      copyBytes(this.bytes, this.optionsStart, bytes, at + 11, options);
    }
    const query = new Query();
    query.#folded = bytes.subarray(start + size, start + size + name.length);
    const triage = query.#readMessage(bytes, start, start + size);
    if (triage !== 'serve') throw new Error(`a query built here did not read back: ${triage}`);
    query.#owned = true;
    query.udpLimit = this.udpLimit;
    query.#copyPeer(this, start + size + name.length);
    return query;
  }
}

const PEER_SIZE = 16;
/**
 * The longest name, plus one length byte that is written before the name turns out to be too long.
 */
const FOLDED_SIZE = NAME_MAX + 1;

const empty = new Uint8Array(0);
const loopback = Uint8Array.of(127, 0, 0, 1);
const noRoute: Route = { index: 0, server: '', zone: 'dropped', view: '' };

/** A query made here rather than received: RD set, no EDNS, from 127.0.0.1, `proto` internal. */
export function makeQuery(name: WireName, type: number, qclass = 1, id = 0): Query {
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
  const query = new Query();
  const triage = query.read(bytes, 0, bytes.length);
  if (triage !== 'serve') throw new Error(`a query built here did not read back: ${triage}`);
  query.proto = 'internal';
  return query.keep();
}
