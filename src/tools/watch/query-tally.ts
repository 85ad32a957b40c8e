/** Counts queries, replies and lookups for a client, a name, a server, or a second. */
import { RCODE, rcodeName } from '../../server/wire/iana.ts';
import { isLost, type SeenExchange } from '../capture/pair/seen-exchange.ts';
import { FELT_MS } from '../doctor/thresholds/evidence.ts';
import { LatencyHistogram } from './latency-histogram.ts';
import type { LiveCounts, LookupCounts } from './view.ts';

export type CountedExchange = Pick<SeenExchange, 'ending' | 'rcode' | 'sentMs' | 'repliedMs'>;

/** The estimated size in bytes of a tally's object and list of codes, without the histogram. */
const OWN_BYTES = 200;

export class QueryTally {
  /** The estimated maximum size in bytes. */
  static readonly limitBytes: number = OWN_BYTES + LatencyHistogram.limitBytes;
  queries = 0;
  lost = 0;
  wasted = 0;
  lookups = 0;
  failedLookups = 0;
  slowLookups = 0;
  firstMs: number = Infinity;
  lastMs: number = -Infinity;
  /** Replies by code, which is at most 15. */
  readonly rcodes: number[] = [];
  readonly latency: LatencyHistogram = new LatencyHistogram();

  /** Counts a finished query. */
  add(exchange: CountedExchange): void {
    this.queries++;
    this.#span(exchange.sentMs);
    if (isLost(exchange)) this.lost++;
    else this.#reply(exchange);
  }

  /** Counts the reply to a query that was counted as lost. */
  found(exchange: CountedExchange): void {
    this.lost--;
    this.#reply(exchange);
  }

  /** @param isFound true if it found records */
  lookup(startMs: number, tookMs: number, isFound: boolean): void {
    this.lookups++;
    this.#span(startMs);
    if (!isFound) this.failedLookups++;
    if (tookMs > FELT_MS) this.slowLookups++;
  }

  merge(other: QueryTally): void {
    this.queries += other.queries;
    this.lost += other.lost;
    this.wasted += other.wasted;
    this.lookups += other.lookups;
    this.failedLookups += other.failedLookups;
    this.slowLookups += other.slowLookups;
    this.firstMs = Math.min(this.firstMs, other.firstMs);
    this.lastMs = Math.max(this.lastMs, other.lastMs);
    for (const [rcode, count] of other.rcodes.entries()) this.#count(rcode, count);
    this.latency.merge(other.latency);
  }

  get nxdomain(): number {
    return this.rcodes[RCODE.NXDOMAIN] ?? 0;
  }

  /** The number of error replies. */
  get failed(): number {
    let failed = 0;
    for (const [rcode, count] of this.rcodes.entries())
      if (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) failed += count;
    return failed;
  }

  /** The estimated size in bytes. */
  get bytes(): number {
    return OWN_BYTES + this.latency.bytes;
  }

  counts(): LiveCounts {
    const { queries, lost, failed, wasted, latency } = this;
    return {
      queries,
      lost,
      failed,
      wasted,
      rcodes: this.rcodes
        .map((count, rcode) => ({ rcode: rcodeName(rcode), count }))
        .filter(({ count }) => count > 0)
        .toSorted((one, other) => other.count - one.count),
      latency: {
        p50: latency.quantile(0.5),
        p90: latency.quantile(0.9),
        p99: latency.quantile(0.99),
        p999: latency.quantile(0.999),
        max: latency.count === 0 ? null : latency.maxMs,
      },
    };
  }

  lookupCounts(): LookupCounts {
    const { lookups, failedLookups, slowLookups } = this;
    return { lookups, failedLookups, slowLookups };
  }

  #reply({ rcode, sentMs, repliedMs }: CountedExchange): void {
    if (rcode < 0) return;
    this.#count(rcode, 1);
    if (repliedMs !== null) this.latency.add(Math.max(0, repliedMs - sentMs));
  }

  #count(rcode: number, count: number): void {
    while (this.rcodes.length <= rcode) this.rcodes.push(0);
    this.rcodes[rcode]! += count;
  }

  #span(ms: number): void {
    if (ms < this.firstMs) this.firstMs = ms;
    if (ms > this.lastMs) this.lastMs = ms;
  }
}
