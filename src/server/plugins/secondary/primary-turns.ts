/** Limits how many zones can query a primary at the same time. */
import type { Clock } from '../../base/clock.ts';
import { printSpan } from '../../base/elapsed.ts';
import { printHostPort } from '../../base/ip.ts';
import type { Gauge } from '../../metrics/registry.ts';
import type { RemoteServer } from '../../transport/one-exchange.ts';

/** If a primary takes at least this many milliseconds to fail, it is not contacted for a while. */
const SLOW_AFTER_MS = 5000;
/**
 * Milliseconds for which a primary that did not answer is skipped. Zones whose turn comes during this time query their
 * next primary at once.
 */
const ALONE_FOR_MS = 5000;

interface Primary {
  running: number;
  readonly waiting: (() => void)[];
  aloneUntil: number;
  failure: string;
}

/**
 * Lets zones take turns in querying their primaries, in order of arrival. Thousands of zones that are due at once,
 * after a start or an outage, then do not cause a flood of connections. A zone whose primary is silent, or never stops
 * sending, does not delay others for long.
 */
export class PrimaryTurns {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #queued: Gauge;
  readonly #primaries = new Map<string, Primary>();

  /** @param queued gauge of the zones that are waiting for their turn */
  constructor(clock: Clock, most: number, queued: Gauge) {
    this.#clock = clock;
    this.#most = most;
    this.#queued = queued;
  }

  /**
   * Runs the task when it is its turn to use the primary.
   * @throws Error if the primary has just failed slowly, and any error from the task
   */
  async run<T>({ host, port }: RemoteServer, task: () => Promise<T>): Promise<T> {
    const where = printHostPort(host, port);
    let primary = this.#primaries.get(where);
    if (primary === undefined)
      this.#primaries.set(
        where,
        (primary = { running: 0, waiting: [], aloneUntil: -Infinity, failure: '' }),
      );
    await this.#turn(primary);
    const begun = this.#clock.now();
    try {
      if (begun < primary.aloneUntil)
        throw new Error(
          `${where} is not contacted for ${printSpan(ALONE_FOR_MS)}: ${primary.failure}`,
        );
      return await task();
    } catch (error) {
      const now = this.#clock.now();
      if (now - begun >= SLOW_AFTER_MS) {
        primary.aloneUntil = now + ALONE_FOR_MS;
        primary.failure = (error as Error).message;
      }
      throw error;
    } finally {
      // The longest waiting transfer takes the place.
      const next = primary.waiting.shift();
      if (next === undefined) primary.running--;
      else next();
    }
  }

  async #turn(primary: Primary): Promise<void> {
    if (primary.running < this.#most) {
      primary.running++;
      return;
    }
    this.#queued.add(1);
    await new Promise<void>((resolve) => primary.waiting.push(resolve));
    this.#queued.add(-1);
  }
}
