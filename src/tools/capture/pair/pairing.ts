/**
 * Pairs queries and replies into exchanges by addresses, ports, ID and question. A packet captured on several
 * interfaces counts as one. If its destination is translated from a service's address to a pod's, the new packet is a
 * hop in the exchange.
 */
import { limit, type Limit } from '../../../server/base/limits.ts';
import { printAddress } from '../../../server/base/ip.ts';
import { FLAG, RCODE } from '../../../server/wire/iana.ts';
import { ownMessage } from './own-message.ts';
import type { PassingMessage } from '../read/packets/dissect.ts';
import type { Remarks } from '../read/packets/remarks.ts';
import { CopiedBytes } from './copied-bytes.ts';
import { KnownTexts } from './known-texts.ts';
import { HeadReader, isCut, questionHash, type MessageHead } from './message-head.ts';
import type { Peer } from '../../../server/wire/exchange.ts';
import { Misfits, textOfSocket } from './misfits.ts';
import { isError, OtherAnswerers } from './other-answerers.ts';
import { PairedExchange } from './paired-exchange.ts';
import { isLost, needsFragments, type Hop, type SeenExchange } from './seen-exchange.ts';
import {
  COPY_MS,
  answerHop,
  answers,
  isCopy,
  isSamePacket,
  type AnsweredQuery,
  type HalfAnswered,
  type PendingQuery,
} from './pending-query.ts';

/** The number of queries that may wait for replies. When it is reached, the oldest counts as lost. */
const waitingLimit: Limit = limit({ default: 30_000, min: 100, max: 10_000_000 });
/** In milliseconds. No client waits this long for a reply. */
const REPLY_WAIT_MS = 15_000;
/**
 * In milliseconds. A repeat within this time means that one question was sent twice. No client times out this soon, so
 * a single reply answers both.
 */
const TWICE_MS = 100;
/** In milliseconds. A healthy server takes no longer. */
const LATE_MS = 200;
const TWICE_MAX = 16;
/** The number of addresses per query: those of the service, of the caches and proxies on the path, and of the pod. */
const HOPS_MAX = 16;
/**
 * The two replies to a repeated query are as far apart as the queries were, give or take this factor and this many
 * milliseconds.
 */
const APART = { times: 1.5, ms: 1000 };
/** The number of milliseconds during which copies of a reply are recognised. */
const ANSWERED_MS = 2000;
const ANSWERED_MAX = 20_000;
/** Replies without a query, remembered until the next expiry because their queries may be captured later. */
const EARLY_MAX = 1000;
/** Interfaces known to receive replies. When the limit is reached, all are dropped. */
const INTERFACES_MAX = 10_000;
/**
 * The interval between expiry runs on the capture's clock, in milliseconds, and the size of the servers' hash table, a
 * power of two.
 */
const [EXPIRE_MS, SERVERS] = [100, 256];
/**
 * The fraction of replies seen elsewhere that must return to the query's interface. If fewer do, that interface is not
 * on their path.
 */
const DELIVERED = 0.6;
/** In milliseconds. A query sent this close to the end of a capture may have been answered afterwards. */
const OPEN_MS = 3000;

const NOWHERE = -1;

export const cutRemark =
  'the capture has only the beginning of a message (capture whole packets: tcpdump -s 0)';

export interface ExchangeEvents {
  /** A query was seen; its outcome is unknown. */
  begun?(exchange: SeenExchange): void;
  /** It was answered, repeated, or timed out. */
  ended(exchange: SeenExchange): void;
  /** Another reply to a query that was sent once and has already been answered. Its bytes are reused. */
  again?(exchange: SeenExchange, reply: Uint8Array, timeMs: number): void;
}

export interface PairingCounts {
  queries: number;
  /** Packets that were captured more than once. */
  copies: number;
  unasked: number;
}

export class Pairing {
  readonly counts: PairingCounts = { queries: 0, copies: 0, unasked: 0 };
  readonly #events: ExchangeEvents;
  readonly #remarks: Remarks;
  readonly #most: number;
  readonly #reader = new HeadReader();
  readonly #addresses = new KnownTexts((bytes, start, end) =>
    printAddress(bytes, start, end - start),
  );
  readonly #servers: (Peer | undefined)[] = Array.from({ length: SERVERS });
  readonly #copies = new CopiedBytes();
  /** By both ends and ID, in sending order. */
  readonly #waiting = new Map<string, PendingQuery>();
  /** The same, by a hash of the port and question, for hops. */
  readonly #asked = new Map<number, PendingQuery>();
  /** The number of queries in `PendingQuery.earlier`. */
  #earlier = 0;
  readonly #answered = new Map<string, AnsweredQuery>();
  /** Repeated queries with one reply, by key. The key's query decides whether to expect another reply. */
  readonly #halfAnswered = new Map<string, HalfAnswered>();
  /** The number of queries in both `PendingQuery.repeated` and `HalfAnswered`. */
  #undecided = 0;
  /** By their queries' key. */
  readonly #early = new Map<string, PassingMessage>();
  /** For each interface with queries, the replies that were first seen elsewhere and how many of them returned here. */
  readonly #delivering = new Map<number, { expected: number; came: number }>();
  readonly #others = new OtherAnswerers();
  readonly #misfits = new Misfits();
  readonly #key = Buffer.alloc(64);
  #nowMs = 0;
  #expiredMs = 0;

  constructor(events: ExchangeEvents, remarks: Remarks, most: number = waitingLimit.default) {
    this.#events = events;
    this.#remarks = remarks;
    this.#most = most;
  }

  take(message: PassingMessage): void {
    this.#nowMs = Math.max(this.#nowMs, message.timeMs);
    // Not done for every message, because finding a Map's first entry skips all entries deleted before it.
    if (this.#nowMs - this.#expiredMs > EXPIRE_MS || this.#answered.size > ANSWERED_MAX)
      this.#expire();
    const { bytes, start, end } = message;
    const readable = this.#reader.read(bytes, start, end, message.cut);
    const { head } = this.#reader;
    const isReply = (head.flags & FLAG.QR) !== 0;
    if (message.cut) this.#remarks.add(cutRemark, `frame ${message.frame}`);
    if (!readable && message.cut) {
      this.#reader.readCut(bytes, start, end);
    } else if (!readable && !(isReply && head.questions === 0)) {
      this.#remarks.add('a message is not readable DNS', `frame ${message.frame}`);
      return;
    }
    if (isReply) this.#reply(message, head);
    else if (this.#isUnflagged(message, head))
      this.#misfits.add(this.#socketOf(message), head, false, message.timeMs);
    else this.#query(message, head);
  }

  advance(nowMs: number): void {
    if (nowMs <= this.#nowMs) return;
    this.#nowMs = nowMs;
    if (nowMs - this.#expiredMs > EXPIRE_MS) this.#expire();
  }

  /** Handles a reply from a port that does not serve DNS, because a server may answer from the wrong port. */
  takeElsewhere(message: PassingMessage): void {
    const { bytes, start, end } = message;
    if (this.#waiting.size === 0 || !this.#reader.read(bytes, start, end)) return;
    this.#stray(message, this.#reader.head);
  }

  /** Ends the capture. Unanswered queries count as lost, except for those from the last seconds. */
  end(): void {
    for (const waiting of this.#waiting.values()) {
      const { exchange, hop } = waiting;
      if (hop === null)
        this.#finishAll(waiting, this.#nowMs - exchange.sentMs < OPEN_MS ? 'open' : 'lost');
    }
    for (const each of this.#halfAnswered.values())
      this.#giveUp(each, each.isLate && this.#nowMs < each.untilMs ? 'open' : 'retried');
    this.#halfAnswered.clear();
    this.#waiting.clear();
    this.#asked.clear();
    this.#answered.clear();
    this.#early.clear();
    this.#misfits.clear();
    this.#delivering.clear();
    this.#nowMs = 0;
    this.#expiredMs = 0;
  }

  #query(message: PassingMessage, head: MessageHead): void {
    this.counts.queries++;
    const key = this.#keyOf(message, head.id, false);
    const { sourcePort } = message;
    const question = questionHash(message.protocol, sourcePort, head);
    const same = this.#waiting.get(key);
    if (same !== undefined && isCopy(same, message)) {
      this.counts.copies++;
      if (message.ttl < same.ttl) same.exchange.routed = true;
      if (message.damaged === true) same.exchange.damagedQuery = true;
      return;
    }
    const before = same ?? null;
    const first =
      before === null ? this.#askedBy(question, message.protocol, sourcePort, head) : null;
    if (first !== null && isSamePacket(first, message, this.#source(message))) {
      this.#hop(first, message, key);
      return;
    }
    const repeated = before !== null && before.exchange.name === head.name;
    let earlier: PairedExchange[] | null = null;
    let undecided: PairedExchange[] | null = null;
    const half = this.#halfAnswered.get(key);
    // A client that gets an error retries immediately, as musl does, while replies to its other queries are still on
    // their way.
    if (half !== undefined && !(half.isError && message.timeMs < half.untilMs)) {
      this.#halfAnswered.delete(key);
      this.#giveUp(half);
    }
    if (before !== null) {
      const { stray } = before.exchange;
      if (repeated && stray !== null) this.#others.repeated(before.exchange);
      this.#forget(before);
      const sinceMs = message.timeMs - before.exchange.sentMs;
      const isTwice = repeated && before.hop === null && before.exchange.type === head.type;
      if (isTwice && sinceMs < TWICE_MS && (before.earlier?.length ?? 0) < TWICE_MAX) {
        earlier = [...(before.earlier ?? []), before.exchange];
        undecided = before.repeated;
        this.#earlier++;
      } else if (isTwice && before.earlier === null && stray === null) {
        undecided = [...(before.repeated ?? []), before.exchange];
        this.#undecided++;
      } else this.#finishAll(before, 'retried');
    }
    const attempt = repeated ? before.exchange.attempt + 1 : 1;
    const [client, server] = [this.#source(message), this.#server(message)];
    const exchange = new PairedExchange(message, head, client, server, attempt, this.#copies);
    const { ipId, ttl, port } = message;
    const waiting: PendingQuery = {
      exchange,
      earlier,
      repeated: undecided,
      key,
      hopKeys: null,
      question,
      ipId,
      ttl,
      port,
      hop: null,
    };
    this.#waiting.set(key, waiting);
    this.#asked.set(question, waiting);
    const taken = this.#others.asked(exchange);
    if (taken !== null) this.#takeStrays(taken);
    this.#events.begun?.(exchange);
    this.#makeRoom();
    const early = this.#early.get(key);
    if (early !== undefined) this.#takeEarly(key, early, message.timeMs);
  }

  /** The reply was captured after its query but has an earlier time, which happens when several CPUs handle packets. */
  #takeEarly(key: string, reply: PassingMessage, sentMs: number): void {
    this.#early.delete(key);
    if (reply.timeMs < sentMs || !this.#reader.read(reply.bytes, reply.start, reply.end)) return;
    this.counts.unasked--;
    this.#reply(reply, this.#reader.head);
  }

  /**
   * Gives up on the oldest queries, several at once, because finding a Map's first entry skips all entries deleted
   * before it.
   */
  #makeRoom(): void {
    if (this.#waiting.size + this.#earlier + this.#undecided <= this.#most) return;
    for (const [key, each] of this.#halfAnswered) {
      this.#halfAnswered.delete(key);
      this.#giveUp(each);
    }
    let left = Math.max(1, Math.floor(this.#most / 100));
    for (const oldest of this.#waiting.values()) {
      if (left-- === 0) break;
      this.#remarks.add(
        'too many queries wait for replies: the oldest was dropped',
        '',
        1 + (oldest.earlier?.length ?? 0) + (oldest.repeated?.length ?? 0),
      );
      this.#forget(oldest);
      this.#finishAll(oldest, 'lost');
    }
  }

  /** Handles the same packet with another destination and perhaps another source. */
  #hop(first: PendingQuery, message: PassingMessage, key: string): void {
    const { exchange } = first;
    if (message.damaged === true) exchange.damagedQuery = true;
    if (exchange.hops.length === HOPS_MAX) {
      this.#remarks.add('a query passed more addresses than are tracked');
      this.counts.copies++;
      return;
    }
    const [client, server] = [this.#source(message), this.#target(message)];
    const { timeMs: sentMs, port, ipId, ttl } = message;
    const times = { sentMs, repliedMs: null };
    const hop: Hop = { client, server, ...times, port, replyBytes: 0, replyPorts: [] };
    exchange.hops = exchange.hops.length === 0 ? [hop] : [...exchange.hops, hop];
    (first.hopKeys ??= []).push(key);
    this.#waiting.set(key, { ...first, ipId, ttl, port, hop });
    this.#makeRoom();
  }

  #reply(message: PassingMessage, head: MessageHead): void {
    const key = this.#keyOf(message, head.id, true);
    const waiting = this.#waiting.get(key);
    const { timeMs } = message;
    if (waiting === undefined || !answers(head, waiting.exchange)) {
      if (this.#answersFirst(key, message, head)) return;
      const answered = this.#answered.get(key);
      if (answered !== undefined) {
        this.counts.copies++;
        const { exchange } = answered;
        if (answered.hop !== null) answerHop(answered.hop, message);
        if (exchange.attempt === 1 && answers(head, exchange) && !this.#halfAnswered.has(key))
          this.#events.again?.(
            exchange,
            message.bytes.subarray(message.start, message.end),
            timeMs,
          );
        // Forwarded replies leave a node the same way as its own queries, so they are not expected there.
        if (answered.expectedAt === message.port) {
          this.#deliveries(message.port).came++;
          answered.expectedAt = NOWHERE;
        }
      } else if (!this.#stray(message, head)) {
        this.counts.unasked++;
        this.#misfits.add(this.#socketOf(message), head, true, message.timeMs);
        if (this.#early.size < EARLY_MAX) this.#early.set(key, ownMessage(message));
      }
      return;
    }
    const { hop } = waiting;
    const { exchange: asked } = waiting;
    const answered: AnsweredQuery = { timeMs, expectedAt: NOWHERE, exchange: asked, hop };
    this.#answered.set(key, answered);
    if (hop !== null) {
      answerHop(hop, message);
      if (waiting.earlier !== null)
        for (const { hops } of waiting.earlier)
          for (const same of hops)
            if (same.server.address === hop.server.address) answerHop(same, message);
      return;
    }
    const { exchange } = waiting;
    if (message.port !== waiting.port && message.protocol === 'udp') {
      // If other replies return to this interface, this one should as well.
      const bytes = message.size;
      const deliveries = this.#deliveries(waiting.port);
      // (Large replies are not representative of the interface.)
      if (exchange.strandedBytes === 0 && !needsFragments(bytes)) deliveries.expected++;
      if (deliveries.came > 0 && deliveries.came >= DELIVERED * deliveries.expected) {
        exchange.strandedBytes = bytes;
        return;
      }
      if (!needsFragments(bytes)) answered.expectedAt = waiting.port;
    } else if (exchange.strandedBytes > 0) {
      if (!needsFragments(exchange.strandedBytes)) this.#deliveries(message.port).came++;
      exchange.strandedBytes = 0;
    }
    this.#forget(waiting);
    if (waiting.earlier !== null)
      for (const each of waiting.earlier) each.answer(message, head, this.#copies);
    exchange.answer(message, head, this.#copies);
    const { repeated } = waiting;
    const half = this.#halfAnswered.get(key);
    if (half !== undefined) half.untilMs += timeMs - half.replies.at(-1)!;
    if (repeated !== null) {
      waiting.repeated = null;
      const apartMs = exchange.sentMs - repeated[0]!.sentMs;
      this.#halfAnswered.set(key, {
        exchanges: [...(half?.exchanges ?? []), ...repeated],
        isLate: timeMs - exchange.sentMs > LATE_MS,
        isError: exchange.rcode === RCODE.SERVFAIL,
        untilMs: timeMs + APART.times * apartMs + APART.ms,
        replies: [...(half?.replies ?? []), timeMs],
      });
    }
    this.#finishAll(waiting, 'answered');
  }

  /**
   * Handles the reply to a repeated query. This means that the previous reply, which answered both, belonged to the
   * first query and was late rather than lost.
   */
  #answersFirst(key: string, message: PassingMessage, head: MessageHead): boolean {
    const half = this.#halfAnswered.get(key);
    if (half === undefined) return false;
    const { exchanges, replies } = half;
    const [first] = exchanges;
    if (message.timeMs - replies.at(-1)! < COPY_MS || !answers(head, first!)) return false;
    first!.answer({ ...message, timeMs: replies.shift()! }, head, this.#copies);
    replies.push(message.timeMs);
    exchanges.shift();
    if (exchanges.length === 0) this.#halfAnswered.delete(key);
    this.#undecided--;
    this.#finish(first!, 'answered');
    return true;
  }

  /** There was no other reply, so the remaining queries were lost. */
  #giveUp(
    { exchanges }: Pick<HalfAnswered, 'exchanges'>,
    ending: SeenExchange['ending'] = 'retried',
  ): void {
    this.#undecided -= exchanges.length;
    for (const each of exchanges) this.#finish(each, ending);
  }

  #deliveries(port: number): { expected: number; came: number } {
    let deliveries = this.#delivering.get(port);
    if (deliveries === undefined) {
      if (this.#delivering.size >= INTERFACES_MAX) this.#delivering.clear();
      deliveries = { expected: 0, came: 0 };
      this.#delivering.set(port, deliveries);
    }
    return deliveries;
  }

  /** Handles a reply that comes from an address other than the server of the captured query. */
  #stray(message: PassingMessage, head: MessageHead): boolean {
    const { protocol, targetPort } = message;
    const question = questionHash(protocol, targetPort, head);
    const asked = this.#askedBy(question, protocol, targetPort, head);
    if (asked === undefined || asked === null) return false;
    const { exchange } = asked;
    // With address translation, the reply goes to the node's address.
    const target = this.#target(message).address;
    const isTheirs = exchange.client.address === target;
    if (!isTheirs && !exchange.hops.some(({ client }) => client.address === target)) return false;
    if (exchange.stray !== null) return true;
    exchange.stray = this.#source(message);
    exchange.answer(message, head, this.#copies);
    exchange.isStrayReply = true;
    // The translation has no entry for such a reply.
    if (!isTheirs) return true;
    const isTaken = this.#others.answered(exchange, exchange.stray.address);
    // Otherwise, later queries will show whether the client accepts it.
    if (isTaken && asked.earlier === null) {
      this.#forget(asked);
      this.#finishAll(asked, 'answered');
    }
    return true;
  }

  /** By now, clients are known to accept replies from this address. */
  #takeStrays(from: string): void {
    for (const waiting of this.#waiting.values()) {
      const { exchange, earlier, hop } = waiting;
      if (exchange.stray?.address !== from || earlier !== null || hop !== null) continue;
      this.#forget(waiting);
      this.#finishAll(waiting, 'answered');
    }
  }

  #source({ head, addressesAt: at, family, sourcePort: port }: PassingMessage): Peer {
    return { address: this.#addresses.of(head, at, at + (family === 4 ? 4 : 16)), port };
  }

  #target({ head, addressesAt, family, targetPort: port }: PassingMessage): Peer {
    const size = family === 4 ? 4 : 16;
    const at = addressesAt + size;
    return { address: this.#addresses.of(head, at, at + size), port };
  }

  /** True for a reply that returns to a query's socket without the QR flag. */
  #isUnflagged(message: PassingMessage, { id }: MessageHead): boolean {
    const { sourcePort, targetPort } = message;
    return sourcePort < targetPort && this.#waiting.has(this.#keyOf(message, id, true));
  }

  /** The socket that a reply goes to, together with its server. */
  #socketOf(message: PassingMessage): string {
    return textOfSocket(message.protocol, this.#target(message), this.#source(message));
  }

  /** A query's destination. There are few servers, so each one is a shared object. */
  #server({ head, addressesAt, family, targetPort: port }: PassingMessage): Peer {
    const size = family === 4 ? 4 : 16;
    const at = addressesAt + size;
    const address = this.#addresses.of(head, at, at + size);
    const place = this.#addresses.hash & (SERVERS - 1);
    const known = this.#servers[place];
    if (known?.port === port && known.address === address) return known;
    return (this.#servers[place] = { address, port });
  }

  /** The waiting query that asked this question from this port. */
  #askedBy(
    hash: number,
    protocol: PassingMessage['protocol'],
    port: number,
    { id, type, name }: MessageHead,
  ): PendingQuery | null {
    const asked = this.#asked.get(hash);
    if (asked === undefined) return null;
    const { exchange } = asked;
    const isIt =
      exchange.client.port === port &&
      exchange.id === id &&
      exchange.name === name &&
      exchange.type === type &&
      exchange.protocol === protocol;
    return isIt ? asked : null;
  }

  #finishAll({ exchange, earlier, repeated }: PendingQuery, ending: SeenExchange['ending']): void {
    if (repeated !== null) this.#giveUp({ exchanges: repeated });
    if (earlier !== null) {
      this.#earlier -= earlier.length;
      for (const each of earlier) this.#finish(each, ending);
    }
    this.#finish(exchange, ending);
  }

  #finish(exchange: PairedExchange, ending: SeenExchange['ending']): void {
    // If the capture has only the beginning of each TCP segment, the reply may be in the part that is missing.
    const isUnknown = ending === 'lost' && exchange.protocol === 'tcp' && isCut(exchange.name);
    exchange.ending = isUnknown ? 'open' : ending;
    if (exchange.stray !== null && ending !== 'answered') {
      // A client that repeats a query did not accept the reply, unless it was an error.
      const isTaken =
        (ending !== 'retried' || isError(exchange)) && this.#others.isTaken(exchange.stray.address);
      if (isTaken) exchange.ending = 'answered';
      else exchange.dropReply();
    }
    if (!this.#misfits.isEmpty && isLost(exchange)) {
      const { protocol, client, server } = exchange;
      const misfit = this.#misfits.take(textOfSocket(protocol, client, server), exchange);
      if (misfit !== null) exchange.misfit = misfit;
    }
    this.#events.ended(exchange);
  }

  #forget({ key, hopKeys, question, exchange }: PendingQuery): void {
    this.#waiting.delete(key);
    if (hopKeys !== null) for (const each of hopKeys) this.#waiting.delete(each);
    if (this.#asked.get(question)?.exchange === exchange) this.#asked.delete(question);
  }

  #expire(): void {
    const now = this.#nowMs;
    this.#expiredMs = now;
    this.#early.clear();
    for (const waiting of this.#waiting.values()) {
      if (now - waiting.exchange.sentMs < REPLY_WAIT_MS) break;
      this.#forget(waiting);
      this.#finishAll(waiting, 'lost');
    }
    for (const [key, half] of this.#halfAnswered) {
      if (now < half.untilMs) continue;
      this.#halfAnswered.delete(key);
      this.#giveUp(half);
    }
    for (const [key, { timeMs }] of this.#answered) {
      if (now - timeMs < ANSWERED_MS && this.#answered.size < ANSWERED_MAX / 2) break;
      this.#answered.delete(key);
    }
  }

  /** Combines both ends, the protocol and the ID into a string. A reply has the same key as its query. */
  #keyOf(of: PassingMessage, id: number, reply: boolean): string {
    const { head, addressesAt, family } = of;
    const size = family === 4 ? 4 : 16;
    const out = this.#key;
    const first = reply ? size : 0;
    for (let i = 0; i < size; i++) {
      out[i] = head[addressesAt + first + i]!;
      out[size + i] = head[addressesAt + size - first + i]!;
    }
    const at = 2 * size;
    const client = reply ? of.targetPort : of.sourcePort;
    const server = reply ? of.sourcePort : of.targetPort;
    out[at] = client >> 8;
    out[at + 1] = client & 0xff;
    out[at + 2] = server >> 8;
    out[at + 3] = server & 0xff;
    out[at + 4] = id >> 8;
    out[at + 5] = id & 0xff;
    out[at + 6] = of.protocol === 'udp' ? 1 : 2;
    return out.toString('latin1', 0, at + 7);
  }
}
