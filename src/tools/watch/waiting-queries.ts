/**
 * Queries that wait for their replies. A capture can wait for fifteen seconds until it calls one
 * lost; who watches an outage cannot.
 */
import type { SeenExchange } from '../capture/pair/seen-exchange.ts';

/** No client waits for longer before it gives up or asks again (glibc and Go: 5 s), milliseconds. */
const PATIENCE_MS = 5000;
/** Queries that wait at a time; with more, the oldest are left to the pairing. */
const WAITING_MAX = 100_000;

/** Presumes queries lost that no client waits for any more. */
export class WaitingQueries {
  #queue: SeenExchange[] = [];
  /** The start of the queue. */
  #at = 0;
  /** Presumed lost, until the pairing is sure. */
  readonly #presumed = new Set<SeenExchange>();

  begun(exchange: SeenExchange): void {
    this.#queue.push(exchange);
    if (this.#queue.length - this.#at > WAITING_MAX) this.#at++;
    if (this.#at > WAITING_MAX) this.#shrink();
  }

  /** @returns whether it was presumed lost before */
  ended(exchange: SeenExchange): boolean {
    return this.#presumed.delete(exchange);
  }

  /** @param lose gets each query that is presumed lost by now; its ending is `lost` from then on */
  advance(nowMs: number, lose: (exchange: SeenExchange) => void): void {
    while (this.#at < this.#queue.length) {
      const exchange = this.#queue[this.#at]!;
      if (nowMs - exchange.sentMs < PATIENCE_MS) break;
      this.#at++;
      if (exchange.ending !== 'waiting' || this.#presumed.size >= WAITING_MAX) continue;
      exchange.ending = 'lost';
      this.#presumed.add(exchange);
      lose(exchange);
    }
    if (2 * this.#at > this.#queue.length) this.#shrink();
  }

  /** The number of waiting queries. */
  get size(): number {
    let waiting = 0;
    for (let at = this.#at; at < this.#queue.length; at++)
      if (this.#queue[at]!.ending === 'waiting') waiting++;
    return waiting;
  }

  /** Queries of which it holds the bytes. */
  get held(): number {
    return this.#queue.length + this.#presumed.size;
  }

  #shrink(): void {
    this.#queue = this.#queue.slice(this.#at);
    this.#at = 0;
  }
}
