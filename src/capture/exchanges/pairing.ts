/**
 * Queries and replies become exchanges: by addresses, ports, id and question. One packet that was captured on several interfaces is one;
 * one whose destination was translated on the way (a service's address to a pod's) is a hop of the exchange.
 */
import { limit, type Limit } from '../../base/limits.ts';
import { printAddress } from '../../base/ip.ts';
import { FLAG } from '../../wire/iana.ts';
import type { PassingMessage } from '../packets/dissect.ts';
import type { Remarks } from '../packets/remarks.ts';
import { CopiedBytes } from './copied-bytes.ts';
import { HeadReader, type MessageHead } from './message-head.ts';
import type { Peer } from '../../wire/exchange.ts';
import type { Hop, SeenExchange } from './seen-exchange.ts';

/** Queries that may wait for their replies at a time; the oldest counts as lost when there are more. */
const waitingLimit: Limit = limit({ default: 40_000, min: 100, max: 10_000_000 });
/** How long a query waits for its reply, milliseconds: as long as any client does, and more. */
const REPLY_WAIT_MS = 15_000;
/** Copies of one packet are captured within this time. */
const COPY_MS = 50;
/** So long replies are known, to tell copies of them. */
const ANSWERED_MS = 2000;
const ANSWERED_MAX = 20_000;
/** How often the oldest are looked for, on the clock of the capture. */
const EXPIRE_MS = 100;
/** What was sent so shortly before the end of a capture may still have been answered. */
const OPEN_MS = 3000;

/** Said of each message that is not whole. */
export const cutRemark =
  'the capture has only the beginning of a message (take more of each packet: tcpdump -s 0)';

/** Who is told of exchanges. */
export interface ExchangeEvents {
  /** A query was seen; nothing is known yet of what becomes of it. */
  begun?(exchange: SeenExchange): void;
  /** It was answered, repeated, or waited for long enough. */
  ended(exchange: SeenExchange): void;
}

/** What was not made an exchange of. */
export interface PairingCounts {
  queries: number;
  replies: number;
  /** Packets that were captured more than once. */
  copies: number;
  /** Replies to no query of the capture. */
  unasked: number;
}

/** Pairs messages, in the order of a capture. */
export class Pairing {
  readonly counts: PairingCounts = { queries: 0, replies: 0, copies: 0, unasked: 0 };
  readonly #events: ExchangeEvents;
  readonly #remarks: Remarks;
  readonly #most: number;
  readonly #reader = new HeadReader();
  readonly #texts = new AddressTexts();
  readonly #copies = new CopiedBytes();
  /** By both ends and id. Insertion order is the order of sending. */
  readonly #waiting = new Map<string, Waiting>();
  /** The same by port and question, for hops. */
  readonly #asked = new Map<string, Waiting>();
  readonly #answered = new Map<string, number>();
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
    // To find the oldest of a Map costs as much as was deleted from it before: not with each message.
    if (this.#nowMs - this.#expiredMs > EXPIRE_MS || this.#answered.size > ANSWERED_MAX)
      this.#expire();
    const { bytes, start, end } = message;
    const readable = this.#reader.read(bytes, start, end);
    const { head } = this.#reader;
    const isReply = (head.flags & FLAG.QR) !== 0;
    if (message.cut) this.#remarks.add(cutRemark, `frame ${message.frame}`);
    if (!readable && message.cut) {
      // Ports and ids say which reply is whose; what was asked stays unknown.
      head.name = '';
      head.type = 0;
      head.questions = 0;
    } else if (!readable && !(isReply && head.questions === 0)) {
      this.#remarks.add('a message is no DNS that can be read', `frame ${message.frame}`);
      return;
    }
    if (isReply) this.#reply(message, head);
    else this.#query(message, head);
  }

  /** The capture is over: what is unanswered by now is lost, but for the last seconds. */
  end(): void {
    for (const waiting of this.#waiting.values()) {
      const { exchange, hop } = waiting;
      if (hop === null)
        this.#finish(exchange, this.#nowMs - exchange.sentMs < OPEN_MS ? 'open' : 'lost');
    }
    this.#waiting.clear();
    this.#asked.clear();
    this.#answered.clear();
    this.#nowMs = 0;
    this.#expiredMs = 0;
  }

  #query(message: PassingMessage, head: MessageHead): void {
    this.counts.queries++;
    const key = this.#keyOf(message, head.id, false);
    const question = this.#questionOf(message, head, false);
    const same = this.#waiting.get(key);
    if (same !== undefined && isCopy(same, message)) {
      this.counts.copies++;
      return;
    }
    const before = same ?? null;
    const first = before === null ? this.#asked.get(question) : undefined;
    if (first !== undefined && isSamePacket(first, message, this.#ends(message, false).client)) {
      this.#hop(first, message, key);
      return;
    }
    if (before !== null) {
      this.#forget(before);
      this.#finish(before.exchange, 'retried');
    }
    const repeated = before !== null && before.exchange.name === head.name;
    const attempt = repeated ? before.exchange.attempt + 1 : 1;
    const exchange = this.#exchange(message, head, attempt);
    const { ipId, ttl, port } = message;
    const waiting: Waiting = { exchange, keys: [key], question, ipId, ttl, port, hop: null };
    this.#waiting.set(key, waiting);
    this.#asked.set(question, waiting);
    this.#events.begun?.(exchange);
    if (this.#waiting.size > this.#most) this.#giveUp();
  }

  /** The oldest ones, several at once: each look for the first of a Map passes what was deleted before it. */
  #giveUp(): void {
    let left = Math.max(1, Math.floor(this.#most / 100));
    for (const oldest of this.#waiting.values()) {
      if (left-- === 0) break;
      this.#remarks.add('more queries wait for replies than are followed: the oldest was given up');
      this.#forget(oldest);
      this.#finish(oldest.exchange, 'lost');
    }
  }

  /** The same packet with another destination, and perhaps another sender. */
  #hop(first: Waiting, message: PassingMessage, key: string): void {
    const { exchange } = first;
    const { client, server } = this.#ends(message, false);
    const { timeMs: sentMs, port, ipId, ttl } = message;
    const hop: Hop = { client, server, sentMs, repliedMs: null, port };
    exchange.hops = [...exchange.hops, hop];
    first.keys.push(key);
    this.#waiting.set(key, { ...first, keys: first.keys, ipId, ttl, port, hop });
  }

  #reply(message: PassingMessage, head: MessageHead): void {
    this.counts.replies++;
    const key = this.#keyOf(message, head.id, true);
    const waiting = this.#waiting.get(key);
    const { timeMs } = message;
    if (waiting === undefined || !answers(head, waiting.exchange)) {
      if (this.#answered.has(key)) this.counts.copies++;
      else if (!this.#stray(message, head)) this.counts.unasked++;
      return;
    }
    this.#answered.set(key, timeMs);
    if (waiting.hop !== null) {
      waiting.hop.repliedMs ??= timeMs;
      return;
    }
    const { exchange } = waiting;
    this.#forget(waiting);
    exchange.reply = this.#copies.copy(message.bytes, message.start, message.end);
    fill(exchange, message, head);
    this.#finish(exchange, 'answered');
  }

  /** A reply to a query of the capture, but from another address than was asked. */
  #stray(message: PassingMessage, head: MessageHead): boolean {
    const asked = this.#asked.get(this.#questionOf(message, head, true));
    if (asked === undefined) return false;
    const { client, server } = this.#ends(message, true);
    if (asked.exchange.client.address !== client.address) return false;
    asked.exchange.stray ??= server;
    return true;
  }

  #exchange(message: PassingMessage, head: MessageHead, attempt: number): SeenExchange {
    const { client, server } = this.#ends(message, false);
    return {
      protocol: message.protocol,
      client,
      server,
      sentMs: message.timeMs,
      query: this.#copies.copy(message.bytes, message.start, message.end),
      repliedMs: null,
      reply: null,
      name: head.name,
      type: head.type,
      id: head.id,
      udpSize: head.udpSize,
      cookie: head.cookie,
      capitals: head.capitals,
      queryFrame: message.frame,
      replyFrame: 0,
      rcode: -1,
      replyFlags: 0,
      answers: 0,
      ending: 'waiting',
      attempt,
      hops: noHops,
      stray: null,
    };
  }

  #ends(message: PassingMessage, reply: boolean): Pick<SeenExchange, 'client' | 'server'> {
    const { head, addressesAt, family, sourcePort, targetPort } = message;
    const size = family === 4 ? 4 : 16;
    const source = { address: this.#texts.of(head, addressesAt, size), port: sourcePort };
    const target = { address: this.#texts.of(head, addressesAt + size, size), port: targetPort };
    return reply ? { client: target, server: source } : { client: source, server: target };
  }

  #finish(exchange: SeenExchange, ending: SeenExchange['ending']): void {
    exchange.ending = ending;
    this.#events.ended(exchange);
  }

  #forget({ keys, question, exchange }: Waiting): void {
    for (const key of keys) this.#waiting.delete(key);
    if (this.#asked.get(question)?.exchange === exchange) this.#asked.delete(question);
  }

  #expire(): void {
    const now = this.#nowMs;
    this.#expiredMs = now;
    for (const [key, waiting] of this.#waiting) {
      if (now - waiting.exchange.sentMs < REPLY_WAIT_MS) break;
      if (waiting.hop !== null && waiting.keys[0] !== key) {
        this.#waiting.delete(key);
        continue;
      }
      this.#forget(waiting);
      this.#finish(waiting.exchange, 'lost');
    }
    for (const [key, at] of this.#answered) {
      if (now - at < ANSWERED_MS && this.#answered.size < ANSWERED_MAX / 2) break;
      this.#answered.delete(key);
    }
  }

  /** Both ends, protocol and id as one text; that of a reply is that of its query. */
  #keyOf({ head, addressesAt, family, ...of }: PassingMessage, id: number, reply: boolean): string {
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

  /** The client's port, the protocol, id and question as one text: what translation of addresses leaves as it is. */
  #questionOf(of: PassingMessage, { id, type, name }: MessageHead, reply: boolean): string {
    const port = reply ? of.targetPort : of.sourcePort;
    return `${port} ${id} ${of.protocol === 'udp' ? type : -type} ${name}`;
  }
}

interface Waiting {
  readonly exchange: SeenExchange;
  /** Its own, then those of its hops. */
  readonly keys: string[];
  readonly question: string;
  readonly ipId: number;
  readonly ttl: number;
  readonly port: number;
  /** What this entry is about; null: the exchange itself. */
  readonly hop: Hop | null;
}

const noHops: readonly Hop[] = [];

/** The packet that is waiting, captured again: on another interface, or one router further. */
function isCopy({ exchange, hop, ipId, ttl, port }: Waiting, message: PassingMessage): boolean {
  const sinceMs = message.timeMs - (hop?.sentMs ?? exchange.sentMs);
  if (sinceMs > COPY_MS) return false;
  return ipId !== 0 ? ipId === message.ipId : port !== message.port || ttl !== message.ttl;
}

/**
 * Whether a query with the same port, id and question is the packet that is waiting, with its addresses translated: it either passed a
 * router or was captured elsewhere. (musl asks all of its servers at once, from one port with one id: those are packets of their own.)
 */
function isSamePacket(
  { exchange, ipId, ttl, port }: Waiting,
  message: PassingMessage,
  client: Peer,
): boolean {
  if (message.timeMs - exchange.sentMs > COPY_MS || ipId !== message.ipId) return false;
  const wentOn = message.ttl < ttl || port !== message.port;
  return wentOn || (ipId !== 0 && client.address === exchange.client.address);
}

/** Replies without a question (some servers' FORMERR and REFUSED) are taken by their id. */
function answers(head: MessageHead, { name, type }: SeenExchange): boolean {
  return head.questions === 0 || name === '' || (head.name === name && head.type === type);
}

function fill(exchange: SeenExchange, message: PassingMessage, head: MessageHead): void {
  exchange.repliedMs = message.timeMs;
  exchange.replyFrame = message.frame;
  exchange.rcode = head.flags & FLAG.RCODE;
  exchange.replyFlags = head.flags;
  exchange.answers = head.answers;
}

/** Texts of addresses, made once each. */
class AddressTexts {
  readonly #known = new Map<number | string, string>();

  of(bytes: Uint8Array, at: number, size: 4 | 16): string {
    let key: number | string;
    if (size === 4)
      key =
        bytes[at]! * 0x1000000 + (bytes[at + 1]! << 16) + (bytes[at + 2]! << 8) + bytes[at + 3]!;
    else {
      key = '';
      for (let i = at; i < at + size; i++) key += String.fromCharCode(bytes[i]!);
    }
    let text = this.#known.get(key);
    if (text === undefined) {
      if (this.#known.size >= 100_000) this.#known.clear();
      text = printAddress(bytes, at, size);
      this.#known.set(key, text);
    }
    return text;
  }
}
