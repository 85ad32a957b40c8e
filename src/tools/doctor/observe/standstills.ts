/**
 * Replies that were all late and came all at once: the server stopped, and answered the waiting
 * queries when it continued.
 */
import { LONG_WAIT_MS, OVERTAKEN_MS, SAME_MOMENT_MS } from '../thresholds/evidence.ts';
import { STANDSTILL, STANDSTILL_RATIO } from '../thresholds/silence.ts';

const SOCKETS_MAX = 50;
const STANDSTILLS_MAX = 50;
/**
 * Replies before it that are remembered, and how long after the first query that waited they do not
 * count: they were on their way, milliseconds.
 */
const REPLIES = 64;

export interface Standstill {
  /** The send time of the first query that waited, milliseconds since 1970. */
  readonly fromMs: number;
  /** The time of the last reply to these. */
  readonly toMs: number;
  readonly waited: number;
  /** Of these, those for names of the cluster. */
  readonly own: number;
  /** Replies to others at the time; no more than 64 are counted. */
  readonly meanwhile: number;
  /** Address and port of the first ones. */
  readonly sockets: ReadonlySet<string>;
  readonly names: ReadonlySet<string>;
}

/** Replies of which it is not yet known whether they all came at once. */
interface Burst {
  firstSentMs: number;
  lastSentMs: number;
  readonly firstReplyMs: number;
  lastReplyMs: number;
  waited: number;
  own: number;
  /** Times of the replies before it. */
  readonly before: Float64Array;
  readonly sockets: Set<string>;
  readonly names: Set<string>;
}

export class Standstills {
  readonly #known: Standstill[] = [];
  readonly #replies = new Float64Array(REPLIES);
  #next = 0;
  #burst: Burst | null = null;

  /**
   * Takes an answered query; they come in the order of their replies.
   * @param isOwn whether the name is of the cluster
   */
  add(
    query: {
      readonly sentMs: number;
      readonly client: { readonly address: string; readonly port: number };
      readonly name: string;
    },
    repliedMs: number,
    isOwn: boolean,
  ): void {
    const { sentMs, client, name } = query;
    let burst = this.#burst;
    if (burst !== null && repliedMs - burst.firstReplyMs > SAME_MOMENT_MS) {
      this.#end(burst);
      burst = this.#burst = null;
    }
    const isLate = repliedMs - sentMs >= LONG_WAIT_MS;
    if (burst === null && isLate)
      burst = this.#burst = {
        ...{ firstSentMs: sentMs, lastSentMs: sentMs },
        ...{ firstReplyMs: repliedMs, lastReplyMs: repliedMs, waited: 0, own: 0 },
        ...{ before: this.#replies.slice(), sockets: new Set(), names: new Set() },
      };
    // Queries sent while others waited have waited with them.
    if (burst === null || sentMs > burst.firstReplyMs - SAME_MOMENT_MS) {
      this.#replies[this.#next++ % REPLIES] = repliedMs;
      return;
    }
    burst.firstSentMs = Math.min(burst.firstSentMs, sentMs);
    burst.lastSentMs = Math.max(burst.lastSentMs, sentMs);
    burst.lastReplyMs = Math.max(burst.lastReplyMs, repliedMs);
    burst.waited++;
    if (isOwn) burst.own++;
    if (burst.sockets.size >= SOCKETS_MAX) return;
    burst.sockets.add(`${client.address} ${client.port}`);
    burst.names.add(name);
  }

  /** The first fifty, in order. */
  get list(): readonly Standstill[] {
    if (this.#burst !== null) this.#end(this.#burst);
    this.#burst = null;
    return this.#known;
  }

  #end(burst: Burst): void {
    const { firstSentMs, lastSentMs, firstReplyMs, lastReplyMs, waited, sockets } = burst;
    const isAtOnce = lastSentMs - firstSentMs >= STANDSTILL_RATIO * (lastReplyMs - firstReplyMs);
    if (!isAtOnce || waited < STANDSTILL.waited || sockets.size < STANDSTILL.sockets) return;
    if (this.#known.length >= STANDSTILLS_MAX) return;
    const from = firstSentMs + OVERTAKEN_MS;
    // The first reply may seem to answer a retry of its query, which has waited less.
    const until = firstReplyMs - SAME_MOMENT_MS;
    this.#known.push({
      ...{ fromMs: firstSentMs, toMs: lastReplyMs, waited, own: burst.own },
      meanwhile: burst.before.reduce((sum, ms) => (ms > from && ms < until ? sum + 1 : sum), 0),
      ...{ sockets, names: burst.names },
    });
  }
}
