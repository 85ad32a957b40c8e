import { copyBytes, copyOf } from '../base/copy-bytes.ts';
import { hashSeed, mixedHash, nextHash } from '../base/hash.ts';
import { CLASS, FLAG, HEADER, MESSAGE_MAX, OPCODE, TYPE } from './iana.ts';
import { checkData } from './layout.ts';
import { LOWER, NAME_MAX, printName, type WireName } from './name.ts';
import { areOptions } from './options.ts';
import { checkName, ReadError } from './reader.ts';
import { querySlab } from './slab.ts';
import type { Protocol } from './transports.ts';
import { QuerySignature } from './tsig.ts';

/** By what a query came; `internal`: it was made here. */
export type Proto = Protocol | 'internal';

/** Follows one query through the links of the chain. */
export interface LinkRecorder {
  /** The query comes to a link; the links that are entered before it is left are within it. @returns what `left` and `done` take */
  entered(link: string): number;
  /** The link has returned: with its reply, or with one to come. */
  left(span: number): void;
  /** The link's reply is there. */
  done(span: number): void;
}

/** What is to become of a datagram, judged before any plugin sees it (CoreDNS: header filters of its DNS library). */
export type Triage = 'serve' | 'ignore' | 'formerr' | 'notimp';

/** Which listener, server block and zone a query belongs to: the label values of most metrics. One object per combination. */
export interface Route {
  /** Small and dense, for tables. */
  readonly index: number;
  /** Listen address with scheme, e.g. `dns://:53`. */
  readonly server: string;
  /** The server block's zone that matched, e.g. `cluster.local.`. */
  readonly zone: string;
  /** Name of the view, or empty. */
  readonly view: string;
}

/** In the place of a query's `screen`: the name was rewritten on the way to a part of a reply. */
export const renamed: object = {};

/**
 * One query: a view over the bytes it came in. A listener reuses one object for many queries; who needs a query after
 * the chain has returned (because a promise is pending) works on the copy that `keep()` gives.
 */
export class Query {
  /** Holds the message; foreign memory until `keep()`. */
  bytes: Uint8Array = empty;
  /** The message is `bytes[start, end)`. */
  start = 0;
  end = 0;
  id = 0;
  /** Second header word as it came. */
  flags = 0;
  /** Flags that it gets besides when it is sent upstream. */
  upstreamFlags = 0;
  /** Question type and class. */
  type = 0;
  class = 0;
  /** The code of the error that it gets, since it is no query that plugins may see (NOTIMP, FORMERR); 0: it is one. */
  rejection = 0;
  /** Length of the question's name in wire form. */
  nameLength = 0;
  /** 30-bit hash of the folded name: a small integer, never boxed. */
  hash = 0;
  /** Whether the query has an OPT record, and what it says (RFC 6891). */
  edns = false;
  ednsVersion = 0;
  /** The UDP size the client wrote, as it came. */
  udpSize = 0;
  /** The size plugins may lower (`bufsize`); starts as `udpSize`. */
  udpLimit = 0;
  dnssecOk = false;
  /** EDNS options lie in `bytes[optionsStart, optionsEnd)`. */
  optionsStart = 0;
  optionsEnd = 0;
  /** Its TSIG record, which says nothing before it is proved (RFC 8945); null: there is none. */
  signature: QuerySignature | null = null;

  proto: Proto = 'udp';
  /** 4 or 6. */
  family: 4 | 6 = 4;
  /** The client's address in network order: `peer[peerAt, peerAt + 4 or 16)`. */
  peer: Uint8Array = loopback;
  peerAt = 0;
  peerPort = 0;
  /** The address and port the query was sent to, as text; set by the listener. */
  local = '';
  localPort = 0;
  /** Monotonic ms when the query arrived. */
  arrived = 0;
  route: Route = noRoute;
  /** Of a query that is asked on the way to another one's reply (`depth` > 0): that one's route. */
  via: Route = noRoute;
  /** What `metadata` collected, by label; null without the plugin. */
  notes: Map<string, string> | null = null;
  /** Who is told of each link of the chain that this query comes to; null: nobody, as for nearly all queries. */
  recorder: LinkRecorder | null = null;
  /** Whether there is room for one more query that waits; a link that would have to wait gives `overloaded` otherwise. */
  mayWait = true;
  /**
   * Whoever in front looks at the whole reply before the client gets it, and so need not look at parts of it that are asked for on the
   * way; null: nobody does; `renamed`: somebody does, but the name that is looked up does not stand in the reply.
   */
  screen: object | null = null;
  /** How many internal look-ups led here (CNAME targets): bounds loops. */
  depth = 0;
  /** What all internal look-ups on behalf of one client's query count together: bounds those that branch. Null: there was none yet. */
  lookups: { count: number } | null = null;

  #name: string | null = null;
  /** null: it stands in `bytes`, from `#foldedAt` on. */
  #folded: Uint8Array | null = empty;
  #foldedAt = 0;
  #owned = false;
  #kept: Query | null = null;

  /**
   * Reads a message. Only the header, the first question and an OPT record are looked at.
   * @returns `serve` when the question is whole; otherwise what to do instead. Fields hold what could be read.
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
    this.rejection = 0;
    this.nameLength = 0;
    this.edns = false;
    this.ednsVersion = 0;
    this.udpSize = 0;
    this.udpLimit = 0;
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
    let at = this.start + HEADER.SIZE;
    let hash = hashSeed();
    let length = 0;
    for (;;) {
      if (at >= end) return 'formerr';
      const size = bytes[at++]!;
      folded[length++] = size;
      if (size === 0) break;
      // The first name of a message has nothing before it to point at.
      if (size > 63 || at + size > end || length + size > NAME_MAX - 1) return 'formerr';
      hash = nextHash(hash, size);
      for (const stop = at + size; at < stop; at++) {
        const byte = LOWER[bytes[at]!]!;
        folded[length++] = byte;
        hash = nextHash(hash, byte);
      }
    }
    if (at + 4 > end) return 'formerr';
    this.type = (bytes[at]! << 8) | bytes[at + 1]!;
    this.class = (bytes[at + 2]! << 8) | bytes[at + 3]!;
    this.nameLength = length;
    this.hash = mixedHash(hash) & 0x3fffffff;
    return records === 0 ? 'serve' : this.#readRecords(at + 4, records, additional);
  }

  /** Looks at what follows the question: nothing but OPT as a rule. */
  #readRecords(at: number, records: number, additional: number): Triage {
    const { bytes, end } = this;
    if (records !== 1 || additional !== 1 || at + 11 > end || bytes[at] !== 0)
      return this.#readAll(at, records, additional);
    if (bytes[at + 1] !== 0 || bytes[at + 2] !== TYPE.OPT)
      return this.#readAll(at, records, additional);
    return this.#readOpt(at);
  }

  /** Takes over the OPT record at `at`. */
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
   * Looks at records besides OPT, which are rare (TSIG, the SOA of a NOTIFY): each has to lie within the message, with legal names
   * where its type has any. What else is in them is left alone: to read it could take a client's few bytes very long.
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
          // It is the last of all records (RFC 8945 section 5.1).
          if (left !== 1 || additional === 0) return 'formerr';
          tsig = owner - start;
          continue;
        }
        // There is one at most, at the root, in the additional section.
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

  /** The question's name in lower case, wire form; only the first `nameLength` bytes are of this query. */
  get folded(): Uint8Array {
    // Of a copy it is a view, which few need: for one that is only forwarded it is never made.
    const at = this.#foldedAt;
    return (this.#folded ??= this.bytes.subarray(at, at + this.nameLength));
  }

  /** The question's name as text: absolute, lower case, escaped. Built on first use. */
  get name(): string {
    return (this.#name ??= this.nameLength === 0 ? '.' : printName(this.folded));
  }

  /** The question's name in the client's spelling, wire form (a view: valid as long as the query). */
  get wireName(): WireName {
    const at = this.start + HEADER.SIZE;
    return this.bytes.subarray(at, at + this.nameLength);
  }

  /** Whether this query's question stands in `bytes[at, end)`: type, class, and name but for ASCII case. */
  isAskedAt(bytes: Uint8Array, at: number, end: number): boolean {
    const { bytes: own, nameLength } = this;
    const after = at + nameLength;
    if (after + 4 > end) return false;
    const shift = this.start + HEADER.SIZE - at;
    // Length bytes are below 64, so folding leaves them alone; a compressed name differs in its first byte.
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
   * A standard query (opcode QUERY, RFC 1035 section 4.1.1) of class IN, which is all that clients send as a rule. Whoever
   * remembers replies by name and type remembers those of standard queries only.
   */
  get isStandard(): boolean {
    return (this.flags & FLAG.OPCODE) === 0 && this.class === CLASS.IN;
  }

  get recursionDesired(): boolean {
    return (this.flags & FLAG.RD) !== 0;
  }

  get checkingDisabled(): boolean {
    return (this.flags & FLAG.CD) !== 0;
  }

  /** Whether it came over a stream: all that logs and metrics tell of a transport (CoreDNS calls them udp and tcp). */
  get overStream(): boolean {
    return this.proto !== 'udp' && this.proto !== 'internal';
  }

  /** The most bytes a reply may have: what the client wrote over UDP (at least 512), any number over streams. */
  get limit(): number {
    if (this.proto !== 'udp') return MESSAGE_MAX;
    return this.udpLimit > 512 ? this.udpLimit : 512;
  }

  /** Whether this query stays valid after the chain has returned. */
  get owned(): boolean {
    return this.#owned;
  }

  /** This query if it already owns its bytes, else a copy that does: the same one for all who keep it as it is now. */
  keep(): Query {
    if (this.#owned) return this;
    const kept = this.#kept;
    return kept !== null && this.#isAsKept(kept) ? kept : (this.#kept = this.copy());
  }

  /** A copy that owns its bytes and is nobody else's. */
  copy(): Query {
    const copy = new Query();
    copy.#copyFrom(this);
    return copy;
  }

  /** Whether nothing that plugins may change has changed since. */
  #isAsKept(kept: Query): boolean {
    return (
      kept.flags === this.flags &&
      kept.upstreamFlags === this.upstreamFlags &&
      kept.udpLimit === this.udpLimit &&
      kept.notes === this.notes &&
      kept.mayWait === this.mayWait &&
      kept.screen === this.screen &&
      kept.recorder === this.recorder
    );
  }

  /** Message, folded name and address, one after the other in the slab of kept queries. */
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

  /** Puts the address at `at` of the slab that holds this query's message. */
  #copyPeer(from: Query, at: number): void {
    copyBytes(from.peer, from.peerAt, this.bytes, at, from.family === 4 ? 4 : PEER_SIZE);
    this.askFor(from);
    this.peer = this.bytes;
    this.peerAt = at;
  }

  /**
   * Takes over who asks, and all that has been found out about that: for a query that is made to be asked in place of
   * `from`. The address stays where it lies; what the client says of sizes does not come along.
   */
  askFor(from: Query): void {
    this.upstreamFlags = from.upstreamFlags;
    this.signature = from.signature;
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
   * A new, owned query of the same client with another question: for rewrites, search paths, CNAME targets.
   * Flags and EDNS (size, DO, options) are carried along.
   */
  asking(name: WireName, type: number = this.type, qclass: number = this.class): Query {
    // Whoever asks twice has both counted in one place.
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
/** Room for the longest name, and one length byte too many that is found out only after it was written. */
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
