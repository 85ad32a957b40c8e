/**
 * Queries that are waiting for replies. A capture may wait fifteen seconds before it counts a query as lost, which is
 * too long during an outage.
 */
import type { SeenExchange } from '../capture/pair/seen-exchange.ts';

/** In milliseconds. No client waits longer before it fails or retries (glibc and Go: 5 s). */
const PATIENCE_MS = 5000;
/** The maximum number of waiting queries. Beyond this, the pairing handles the newest. */
const WAITING_MAX = 100_000;

/** Presumes that queries are lost once no client would still be waiting. */
export class WaitingQueries {
  /** In the order they were sent. Finished ones are removed at the next `advance`. */
  readonly #queue: SeenExchange[] = [];
  /** The times of queries that were still waiting at the end of their input, in milliseconds since 1970. */
  #unfinishedMs: number[] = [];
  /** Presumed lost until the pairing is certain. */
  readonly #presumed = new Set<SeenExchange>();

  begun(exchange: SeenExchange): void {
    if (this.#queue.length < WAITING_MAX) this.#queue.push(exchange);
  }

  /** @returns whether it had been presumed lost */
  ended(exchange: SeenExchange): boolean {
    if (this.#presumed.delete(exchange)) return true;
    if (exchange.ending === 'open' && this.#unfinishedMs.length < WAITING_MAX)
      this.#unfinishedMs.push(exchange.sentMs);
    return false;
  }

  /** @param lose receives each query that is now presumed lost; from then on, it has ended as `lost` */
  advance(nowMs: number, lose: (exchange: SeenExchange) => void): void {
    if (this.#unfinishedMs.length > 0)
      this.#unfinishedMs = this.#unfinishedMs.filter((sentMs) => nowMs - sentMs < PATIENCE_MS);
    const queue = this.#queue;
    // Removes finished queries immediately. With their messages, 10 000 per second would take up 60 MiB in 5 s.
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

  get size(): number {
    let waiting = this.#unfinishedMs.length;
    for (const { ending } of this.#queue) if (ending === 'waiting') waiting++;
    return waiting;
  }

  /** The queries whose bytes are held. */
  get held(): number {
    return this.#queue.length + this.#presumed.size;
  }
}
