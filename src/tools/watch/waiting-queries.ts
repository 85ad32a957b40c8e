/**
 * Queries that wait for their replies. A capture can wait for fifteen seconds until it counts one
 * as lost; during an outage that is too long.
 */
import type { SeenExchange } from '../capture/pair/seen-exchange.ts';

/** Milliseconds; no client waits longer before it fails or retries (glibc and Go: 5 s). */
const PATIENCE_MS = 5000;
/** Queries that wait at a time; with more, the pairing handles the newest. */
const WAITING_MAX = 100_000;

/** Presumes queries lost that no client waits for any more. */
export class WaitingQueries {
  /** By the time at which they were sent; those that have ended leave at the next `advance`. */
  readonly #queue: SeenExchange[] = [];
  /** Presumed lost, until the pairing is sure. */
  readonly #presumed = new Set<SeenExchange>();

  begun(exchange: SeenExchange): void {
    if (this.#queue.length < WAITING_MAX) this.#queue.push(exchange);
  }

  /** @returns whether it was presumed lost before */
  ended(exchange: SeenExchange): boolean {
    return this.#presumed.delete(exchange);
  }

  /** @param lose gets each query that is presumed lost by now; its ending is `lost` from then on */
  advance(nowMs: number, lose: (exchange: SeenExchange) => void): void {
    const queue = this.#queue;
    // Ended queries leave at once: with their messages, 10 000 a second would take 60 MiB in 5 s.
    let left = 0;
    for (const exchange of queue) {
      if (exchange.ending !== 'waiting') continue;
      if (nowMs - exchange.sentMs < PATIENCE_MS || this.#presumed.size >= WAITING_MAX) {
        queue[left++] = exchange;
        continue;
      }
      exchange.ending = 'lost';
      this.#presumed.add(exchange);
      lose(exchange);
    }
    queue.length = left;
  }

  /** The number of waiting queries. */
  get size(): number {
    let waiting = 0;
    for (const { ending } of this.#queue) if (ending === 'waiting') waiting++;
    return waiting;
  }

  /** Queries of which it holds the bytes. */
  get held(): number {
    return this.#queue.length + this.#presumed.size;
  }
}
