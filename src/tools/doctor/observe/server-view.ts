/** One server as a capture shows it: rates and latencies by the second. */
import { HEADER, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { skipName } from '../../../server/wire/skip.ts';
import { isLost, latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { BySecond, type History } from './by-second.ts';
import { countOutcome, noOutcomes, type Outcomes } from './outcomes.ts';
import type { Rate } from './rates.ts';
import { MemoryReplies } from './memory-replies.ts';
import { Standstills } from './standstills.ts';
import { FELT_MS, OVERTAKEN_MS } from '../thresholds/evidence.ts';
import {
  BREATHLESS_FACTOR,
  BREATHLESS_MS,
  PAUSE_MS,
  STOPPED_PROCESS,
} from '../thresholds/silence.ts';
import { FIRST_BUCKET_MS, LOSSY_SECOND } from '../thresholds/lateness.ts';

/** Seconds counted separately: two hours. */
const SECONDS_MAX = 7200;
const CLIENTS_MAX = 1000;
const SERVICES_MAX = 16;
/** Times without a reply that are remembered. */
const PAUSES_MAX = 2000;
const BUCKETS = 20;
/**
 * Queries after the last reply that are remembered, and how long before it they may have been sent:
 * some overtake others, milliseconds.
 */
const SINCE_MAX = 50;

export type Asking = Pick<SeenExchange, 'sentMs' | 'client' | 'server' | 'name'>;

export interface Second extends Rate {
  latencyMs: number;
  /** Sum of the natural logarithms of the latencies, milliseconds. */
  logMs: number;
  /**
   * Replies to queries for names of the cluster that were asked in it, and the sum of their
   * latencies, milliseconds.
   */
  own: number;
  ownMs: number;
  /** Bytes of the longest reply over UDP that came in it; a truncated one counts as what it has. */
  longest: number;
}

/** A time without any reply, milliseconds since 1970. */
export interface Pause {
  readonly fromMs: number;
  readonly toMs: number;
}

export type ServerHistory = History<Second>;

export interface QueryCounts {
  asked: number;
  lost: number;
  /**
   * Answered with FORMERR or NOTIMP: the server does not know what it was sent (RFC 6891 section
   * 7).
   */
  misread: number;
}

export class ServerView {
  readonly address: string;
  readonly outcomes: Outcomes = noOutcomes();
  /** Of these, those with EDNS and those without. */
  readonly edns: QueryCounts = { asked: 0, lost: 0, misread: 0 };
  readonly plain: QueryCounts = { asked: 0, lost: 0, misread: 0 };
  /** Of those with EDNS over UDP, those with a cookie (RFC 7873) and those without. */
  readonly cookies: QueryCounts = { asked: 0, lost: 0, misread: 0 };
  readonly cookieless: QueryCounts = { asked: 0, lost: 0, misread: 0 };
  /** Clients that sent EDNS with a cookie, and clients that got replies to EDNS without one. */
  readonly cookieClients: Set<string> = new Set();
  readonly cookielessClients: Set<string> = new Set();
  readonly tcp: QueryCounts = { asked: 0, lost: 0, misread: 0 };
  readonly clients: Set<string> = new Set();
  /** Service addresses whose queries were translated. Those of a DNS pod led to it. */
  readonly services: Set<string> = new Set();
  /** Clients that got a reply. */
  readonly served: Set<string> = new Set();
  readonly #seconds = new BySecond(newSecond, SECONDS_MAX);
  /** Replies, but for SERVFAIL, that took `FELT_MS` or longer. */
  late: number = 0;
  readonly standstills: Standstills = new Standstills();
  /** Replies for cluster names; null if there are none. */
  memoryReplies: MemoryReplies | null = null;
  firstMs: number = Infinity;
  lastMs: number = -Infinity;
  /** The time of the last query, even if its end is unknown. */
  lastAskedMs: number = -Infinity;
  firstReplyMs: number = Infinity;
  lastReplyMs: number = -Infinity;
  readonly #pauses: Pause[] = [];
  /** Queries that were sent after the last reply came. */
  #sinceReply: Asking[] = [];
  readonly #latencies = Array.from({ length: BUCKETS }, () => 0);

  constructor(address: string) {
    this.address = address;
  }

  /**
   * @param isOfCluster whether the name is of the cluster: a server that has its services answers
   * from memory, unless the service is an alias of an external name
   */
  add(exchange: SeenExchange, isOfCluster: boolean): void {
    const isOwn = isOfCluster && !isAlias(exchange);
    const { sentMs, repliedMs, client } = exchange;
    countOutcome(this.outcomes, exchange);
    countKind(exchange.udpSize > 0 ? this.edns : this.plain, exchange);
    if (exchange.protocol === 'tcp') countKind(this.tcp, exchange);
    else if (exchange.udpSize > 0) this.#countCookie(exchange);
    if (this.clients.size < CLIENTS_MAX) this.clients.add(client.address);
    if (exchange.hops.length > 0 && this.services.size < SERVICES_MAX)
      this.services.add(exchange.server.address);
    this.firstMs = Math.min(this.firstMs, sentMs);
    this.lastMs = Math.max(this.lastMs, sentMs);
    this.lastAskedMs = Math.max(this.lastAskedMs, sentMs);
    const second = this.#seconds.at(sentMs);
    if (second !== null) second.asked++;
    const took = latencyOf(exchange);
    if (took === null || repliedMs === null) {
      if (second !== null) second.lost++;
      this.awaits(exchange);
      return;
    }
    if (this.served.size < CLIENTS_MAX) this.served.add(client.address);
    if (this.#sinceReply.length > 0)
      this.#sinceReply = this.#sinceReply.filter((each) => each.sentMs > repliedMs - OVERTAKEN_MS);
    if (repliedMs - this.lastReplyMs >= PAUSE_MS && this.#pauses.length < PAUSES_MAX)
      this.#pauses.push({ fromMs: this.lastReplyMs, toMs: repliedMs });
    this.firstReplyMs = Math.min(this.firstReplyMs, repliedMs);
    this.lastReplyMs = Math.max(this.lastReplyMs, repliedMs);
    if (second !== null) {
      second.latencyMs += took;
      second.logMs += Math.log(Math.max(took, FIRST_BUCKET_MS));
      if (isOwn) {
        second.own++;
        second.ownMs += took;
      }
    }
    const arrived = this.#seconds.at(repliedMs);
    if (arrived !== null) {
      arrived.replied++;
      if (exchange.protocol === 'udp')
        arrived.longest = Math.max(arrived.longest, exchange.replyBytes);
    }
    if (isOwn) (this.memoryReplies ??= new MemoryReplies()).add(sentMs, repliedMs);
    // A server that answers SERVFAIL has waited for an upstream without success.
    if (exchange.rcode !== RCODE.SERVFAIL) {
      if (took >= FELT_MS) this.late++;
      // (A reply recognised by its repeat is known later than it came.)
      if (repliedMs >= this.lastReplyMs - OVERTAKEN_MS)
        this.standstills.add(exchange, repliedMs, isOwn);
    }
    const bucket = Math.ceil(Math.log2(Math.max(took, FIRST_BUCKET_MS) / FIRST_BUCKET_MS));
    this.#latencies[Math.min(BUCKETS - 1, bucket)]!++;
  }

  #countCookie(exchange: SeenExchange): void {
    const { cookie, client } = exchange;
    countKind(cookie ? this.cookies : this.cookieless, exchange);
    const clients = cookie ? this.cookieClients : this.cookielessClients;
    if ((cookie || !isLost(exchange)) && clients.size < CLIENTS_MAX) clients.add(client.address);
  }

  /** The queries of the whole seconds between these times, and how many of them were lost. */
  within(fromMs: number, toMs: number): Pick<QueryCounts, 'asked' | 'lost'> {
    const sum = { asked: 0, lost: 0 };
    for (const [second, { asked, lost }] of this.history) {
      if (second * 1000 <= fromMs || (second + 1) * 1000 >= toMs) continue;
      sum.asked += asked;
      sum.lost += lost;
    }
    return sum;
  }

  /**
   * Bytes of the longest UDP reply in the whole seconds of this time. If it has none, in the seconds that it touches.
   */
  longestBetween(fromMs: number, toMs: number): number {
    const touched = this.history.filter(
      ([second]) => second * 1000 + 1000 > fromMs && second * 1000 <= toMs,
    );
    const within = touched.filter(
      ([second]) => second * 1000 >= fromMs && second * 1000 + 1000 <= toMs,
    );
    const seconds = within.length > 0 ? within : touched;
    return seconds.reduce((most, [, { longest }]) => Math.max(most, longest), 0);
  }

  /** The first times without any reply, the last of them open: from the last reply on. */
  get pauses(): readonly Pause[] {
    return [...this.#pauses, { fromMs: this.lastReplyMs, toMs: Infinity }];
  }

  /** A query without a reply, even if only because the capture ends. */
  awaits({ sentMs, client, server, name }: SeenExchange): void {
    this.lastAskedMs = Math.max(this.lastAskedMs, sentMs);
    if (sentMs > this.lastReplyMs - OVERTAKEN_MS && this.#sinceReply.length < SINCE_MAX)
      this.#sinceReply.push({ sentMs, client, server, name });
  }

  /** The first queries that were sent after the last reply came. */
  get sinceReply(): readonly Asking[] {
    return this.#sinceReply;
  }

  /**
   * The latency that this share of the answered queries stayed below; within a factor of two.
   * Milliseconds.
   */
  quantile(share: number): number {
    const total = this.#latencies.reduce((sum, each) => sum + each, 0);
    let reached = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      reached += this.#latencies[bucket]!;
      if (total > 0 && reached >= share * total) return FIRST_BUCKET_MS * 2 ** bucket;
    }
    return 0;
  }

  /**
   * Geometric mean of reply times in these seconds, milliseconds: a few very slow replies hardly
   * count.
   */
  static usualMs(seconds: ServerHistory): number {
    const replies = seconds.reduce((sum, [, { asked, lost }]) => sum + asked - lost, 0);
    const sum = seconds.reduce((total, [, { logMs }]) => total + logMs, 0);
    return replies === 0 ? 0 : Math.exp(sum / replies);
  }

  /** True if replies take very much longer while queries are lost than before and after that. */
  get isOutOfBreath(): boolean {
    const { within, otherwise } = this.pace;
    return otherwise > 0 && within > BREATHLESS_MS && within > BREATHLESS_FACTOR * otherwise;
  }

  /**
   * True if the server was silent for a while and then answered all waiting queries: it was
   * stopped, not overloaded.
   */
  get stoodStill(): boolean {
    // The beginning counts: it may have been stopped by then.
    const seconds = this.history.filter(([, { replied }], at) => at === 0 || replied > 0);
    const isGap = seconds.some(
      ([second], at) => at > 0 && second - seconds[at - 1]![0] > STOPPED_PROCESS.seconds,
    );
    return isGap && this.quantile(1) >= STOPPED_PROCESS.ms;
  }

  /**
   * Usual reply times in the seconds in which queries are lost, and before and after these;
   * milliseconds, 0 without any.
   */
  get pace(): { readonly within: number; readonly otherwise: number } {
    const { lossy, calm } = this.byLoss;
    return { within: ServerView.usualMs(lossy), otherwise: ServerView.usualMs(calm) };
  }

  /**
   * The seconds in which queries are lost and others answered, and those before the first and after
   * the last of them: the server is not quicker in between.
   */
  get byLoss(): { readonly lossy: ServerHistory; readonly calm: ServerHistory } {
    const lossy = this.history.filter(
      ([, { lost, asked }]) => lost > LOSSY_SECOND * asked && asked > lost,
    );
    const [from, to] = [lossy[0]?.[0] ?? Infinity, lossy.at(-1)?.[0] ?? -Infinity];
    const calm = this.history.filter(([second]) => second < from || second > to);
    return { lossy, calm };
  }

  get history(): ServerHistory {
    return this.#seconds.history;
  }
}

const newSecond = (): Second => ({
  ...{ asked: 0, replied: 0, lost: 0, latencyMs: 0, logMs: 0, own: 0, ownMs: 0, longest: 0 },
});

function countKind(kind: QueryCounts, exchange: SeenExchange): void {
  kind.asked++;
  if (isLost(exchange)) kind.lost++;
  if (exchange.rcode === RCODE.FORMERR || exchange.rcode === RCODE.NOTIMP) kind.misread++;
}

/** True if the first answer is an alias. An alias that leads nowhere may cause a failure. */
function isAlias({ reply, answers, rcode }: SeenExchange): boolean {
  if (rcode === RCODE.SERVFAIL || rcode === RCODE.REFUSED) return true;
  if (reply === null || answers === 0) return false;
  let at = skipName(reply, HEADER.SIZE, reply.length) + 4;
  at = skipName(reply, at, reply.length);
  return reply[at] === 0 && reply[at + 1] === TYPE.CNAME;
}
