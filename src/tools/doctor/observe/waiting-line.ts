/**
 * Detects a server that answers one query after the other: each waits longer, the more wait before
 * it.
 */
import { RCODE } from '../../../server/wire/iana.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import {
  BEHIND_MS,
  BEHIND_WITH_WORK_MS,
  DID_NOT_WAIT,
  MIN_LINE_LATE,
  MIN_LINE_QUERIES,
  OVERTAKEN_SHARE,
} from '../thresholds/lateness.ts';

/** Queries examined of one server: the first ones. */
const QUERIES_MAX = 4000;

/** Latencies by the number of waiting queries. */
export interface Line {
  /**
   * Pearson’s correlation of a query’s latency with the number of queries that waited when it was
   * sent, -1 to 1.
   */
  readonly correlation: number;
  readonly longest: number;
  /** The cost of each waiting query for the next one, milliseconds. */
  readonly stepMs: number;
}

interface AnsweredQuery {
  readonly sentMs: number;
  readonly repliedMs: number;
  readonly client: string;
  readonly isRefused: boolean;
}

export class WaitingLine {
  #late = 0;
  #overtaken = 0;
  #outrun = 0;
  /** Of the answered query that was sent last. */
  #newest = { sentMs: -Infinity, repliedMs: Infinity };
  readonly #queries: AnsweredQuery[] = [];

  add(exchange: SeenExchange): void {
    const { sentMs, repliedMs, protocol, client, rcode } = exchange;
    if (protocol !== 'udp' || repliedMs === null || isLost(exchange)) return;
    // Exchanges end in the order of their replies.
    if (repliedMs - sentMs >= BEHIND_WITH_WORK_MS) {
      this.#late++;
      const newest = this.#newest;
      if (newest.sentMs > sentMs + BEHIND_MS && newest.repliedMs < repliedMs) {
        this.#overtaken++;
        if (newest.repliedMs - newest.sentMs < DID_NOT_WAIT * (repliedMs - sentMs)) this.#outrun++;
      }
    }
    if (sentMs > this.#newest.sentMs) this.#newest = { sentMs, repliedMs };
    if (this.#queries.length < QUERIES_MAX) {
      const isRefused = rcode === RCODE.REFUSED;
      this.#queries.push({ sentMs, repliedMs, client: client.address, isRefused });
    }
  }

  /** The first answered queries, in the order of their replies. */
  get queries(): readonly AnsweredQuery[] {
    return this.#queries;
  }

  /**
   * True if the server answers others at once while some wait: then these wait for an upstream, not
   * for its CPU.
   */
  get isOutrun(): boolean {
    return this.#late >= MIN_LINE_LATE && this.#outrun > OVERTAKEN_SHARE * this.#late;
  }

  /** True if replies come in another order than queries: then none waits for those before it. */
  get isOvertaken(): boolean {
    return this.#late >= MIN_LINE_LATE && this.#overtaken > OVERTAKEN_SHARE * this.#late;
  }

  /** Most of the answered queries that waited at a time. */
  get most(): number {
    return this.#waits.reduce((most, { waiting }) => Math.max(most, waiting + 1), 0);
  }

  /** Null: too few queries. */
  get line(): Line | null {
    if (this.#queries.length < MIN_LINE_QUERIES) return null;
    const points = this.#waits;
    const meanWaiting = mean(points.map((point) => point.waiting));
    const meanTook = mean(points.map(({ tookMs }) => tookMs));
    let both = 0;
    let ofWaiting = 0;
    let ofTook = 0;
    for (const point of points) {
      const [x, y] = [point.waiting - meanWaiting, point.tookMs - meanTook];
      both += x * y;
      ofWaiting += x * x;
      ofTook += y * y;
    }
    if (ofWaiting === 0 || ofTook === 0) return null;
    return {
      correlation: both / Math.sqrt(ofWaiting * ofTook),
      longest: points.reduce((most, point) => Math.max(most, point.waiting), 0),
      stepMs: both / ofWaiting,
    };
  }

  /** The queries in sending order: how many waited when each was sent, and how long it took. */
  get #waits(): readonly { readonly waiting: number; readonly tookMs: number }[] {
    const sorted = this.#queries.toSorted((one, other) => one.sentMs - other.sentMs);
    let replies: number[] = [];
    return sorted.map(({ sentMs, repliedMs }) => {
      replies = replies.filter((ms) => ms > sentMs);
      const waiting = replies.length;
      replies.push(repliedMs);
      return { waiting, tookMs: repliedMs - sentMs };
    });
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}
