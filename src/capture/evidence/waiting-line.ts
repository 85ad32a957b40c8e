/** Whether a server serves one query after the other: then each waits for longer, the more wait before it. */
import { isLost, type SeenExchange } from '../exchanges/seen-exchange.ts';

/** Queries of one server that are looked at: the first ones. */
const QUERIES_MAX = 4000;
/** Fewer do not say enough. */
const QUERIES_MIN = 60;

/** How latencies go with what waits. */
export interface Line {
  /** Pearson’s correlation of a query’s latency with the number of queries that waited when it was sent, -1 to 1. */
  readonly correlation: number;
  /** Most queries that waited at a time. */
  readonly longest: number;
  /** What each query that waits costs the next one, milliseconds. */
  readonly stepMs: number;
}

/** The answered queries to one server. */
export class WaitingLine {
  readonly #queries: { readonly sentMs: number; readonly repliedMs: number }[] = [];

  add(exchange: SeenExchange): void {
    const { sentMs, repliedMs, protocol } = exchange;
    if (protocol !== 'udp' || repliedMs === null || isLost(exchange)) return;
    if (this.#queries.length < QUERIES_MAX) this.#queries.push({ sentMs, repliedMs });
  }

  /** Null: too few queries. */
  get line(): Line | null {
    if (this.#queries.length < QUERIES_MIN) return null;
    const sorted = this.#queries.toSorted((one, other) => one.sentMs - other.sentMs);
    let waiting: number[] = [];
    const points = sorted.map(({ sentMs, repliedMs }) => {
      waiting = waiting.filter((ms) => ms > sentMs);
      const point = { waiting: waiting.length, tookMs: repliedMs - sentMs };
      waiting.push(repliedMs);
      return point;
    });
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
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}
