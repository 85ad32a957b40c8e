/** Limits how often a Corefile is reloaded, however often reloads are requested. */
import { sleep, type Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Counter, Registry } from '../../metrics/registry.ts';
import type { OneAtATime } from './one-at-a-time.ts';

/** Number of consecutive reloads that start at once. People and controllers need no more. */
const ROW_MAX = 4;
/**
 * Milliseconds between the starts of successive reloads, for every two workers, because all of them share the process's
 * memory. In each worker, a replaced configuration stays in memory until its last query is answered. If upstreams are
 * silent, this takes about ten seconds. Two workers therefore hold at most `ROW_MAX` plus twenty of them in memory.
 */
const PAUSE_MS = 500;

export interface PacedReloadsParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Registry;
  /** Excludes everything that must not run during a reload. */
  readonly taking: OneAtATime;
  readonly workers: () => number;
  /** Loads the Corefile as it is at the time of the call. */
  readonly run: () => Promise<boolean>;
}

/**
 * Paces reloads, at most one of which is waiting. A reload does not read the Corefile until its turn has come, so the
 * newest version is always served in the end.
 */
export class PacedReloads {
  readonly #parts: PacedReloadsParts;
  readonly #deferred: Counter;
  /** Number of reloads that may start at once, as of `#countedAt`. */
  #free = ROW_MAX;
  #countedAt: number;
  #next: Promise<boolean> | null = null;
  #told = false;

  constructor(parts: PacedReloadsParts) {
    this.#parts = parts;
    this.#countedAt = parts.clock.now();
    this.#deferred = parts.metrics.counter(
      'ndots_reload_deferred_total',
      'Corefile reloads delayed because there were too many; all requests during the delay become one reload.',
    );
  }

  /**
   * Loads the Corefile now, or when its turn has come.
   * @returns true if it is being served
   */
  request(): Promise<boolean> {
    if (this.#next !== null) return this.#next;
    let begun = false;
    const next = this.#inTurn(() => {
      begun = true;
      this.#next = null;
    });
    if (!begun) this.#next = next;
    return next;
  }

  /** @param begins called when the Corefile is read; later requests lead to another reload */
  async #inTurn(begins: () => void): Promise<boolean> {
    const { clock, log, taking, run } = this.#parts;
    const waitMs = this.#waitMs();
    if (waitMs > 0) {
      this.#deferred.add(1);
      if (!this.#told)
        log.warning(
          `the Corefile is reloaded too often; from now on, it is reloaded at most once per ${this.#pauseMs / 1000}s, and requests in between are combined`,
        );
      this.#told = true;
      await sleep(clock, waitMs);
    }
    return taking.once(() => {
      begins();
      this.#free--;
      return run();
    });
  }

  get #pauseMs(): number {
    return PAUSE_MS * Math.max(1, this.#parts.workers() / 2);
  }

  /** Returns milliseconds until the next one may start. */
  #waitMs(): number {
    const now = this.#parts.clock.now();
    this.#free = Math.min(ROW_MAX, this.#free + (now - this.#countedAt) / this.#pauseMs);
    this.#countedAt = now;
    if (this.#free === ROW_MAX) this.#told = false;
    return Math.max(0, (1 - this.#free) * this.#pauseMs);
  }
}
