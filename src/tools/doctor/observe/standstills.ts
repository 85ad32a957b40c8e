/**
 * Replies that were all late and came all at once: whoever gave them stood still, and answered what
 * had waited when it went on.
 */

/** What waited for as long is looked at, milliseconds. */
const LATE_MS = 1000;
/** Replies to what had waited come within this time of each other, milliseconds. */
const AT_ONCE_MS = 100;
/**
 * Who serves one query after the other answers for about as long as it was asked: who stood still
 * was asked for so many times longer.
 */
const LONGER = 3;
/**
 * Of fewer queries, or from fewer sockets, nothing can be said; and more are not remembered one by
 * one.
 */
const LEAST = { waited: 3, sockets: 2 };
const SOCKETS_MAX = 50;
const STANDSTILLS_MAX = 50;
/**
 * Replies before it that are remembered, and how long after the first query that waited they do not
 * count: they were on their way, milliseconds.
 */
const REPLIES = 64;
const UNDER_WAY_MS = 50;

/** A time in which queries waited. */
export interface Standstill {
  /** When the first query that waited was sent, milliseconds since 1970. */
  readonly fromMs: number;
  /** When the last one of those that waited was answered. */
  readonly toMs: number;
  readonly waited: number;
  /** Of these, those for names of the cluster. */
  readonly own: number;
  /** Replies to others meanwhile; no more than 64 are counted. */
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

/** Those of one server. */
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
    if (burst !== null && repliedMs - burst.firstReplyMs > AT_ONCE_MS) {
      this.#end(burst);
      burst = this.#burst = null;
    }
    const isLate = repliedMs - sentMs >= LATE_MS;
    if (burst === null && isLate)
      burst = this.#burst = {
        ...{ firstSentMs: sentMs, lastSentMs: sentMs },
        ...{ firstReplyMs: repliedMs, lastReplyMs: repliedMs, waited: 0, own: 0 },
        ...{ before: this.#replies.slice(), sockets: new Set(), names: new Set() },
      };
    // What was asked while others waited waited with them.
    if (burst === null || sentMs > burst.firstReplyMs - AT_ONCE_MS) {
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
    const isAtOnce = lastSentMs - firstSentMs >= LONGER * (lastReplyMs - firstReplyMs);
    if (!isAtOnce || waited < LEAST.waited || sockets.size < LEAST.sockets) return;
    if (this.#known.length >= STANDSTILLS_MAX) return;
    const from = firstSentMs + UNDER_WAY_MS;
    this.#known.push({
      ...{ fromMs: firstSentMs, toMs: lastReplyMs, waited, own: burst.own },
      meanwhile: burst.before.reduce((sum, ms) => (ms > from ? sum + 1 : sum), 0),
      ...{ sockets, names: burst.names },
    });
  }
}
