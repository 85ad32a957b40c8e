/** How many zones each primary is asked for at a time. */
import type { Clock } from '../../base/clock.ts';
import { printHostPort } from '../../base/ip.ts';
import type { Gauge } from '../../metrics/registry.ts';
import type { RemoteServer } from '../../net/one-exchange.ts';

/** A primary that takes as long as this to fail counts as silent, milliseconds. */
const SILENT_AFTER_MS = 5000;
/** For so long after that nobody waits for it again, milliseconds: zones whose turn comes ask their next primary at once. */
const SILENT_FOR_MS = 5000;

interface Primary {
  running: number;
  readonly waiting: (() => void)[];
  silentUntil: number;
}

/**
 * Gives zones their turn at their primaries, in the order in which they come. Thousands of zones that are due at once, after a
 * start or an outage, are then no flood of connections, and one that is silent holds up nobody for long.
 */
export class PrimaryTurns {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #queued: Gauge;
  readonly #primaries = new Map<string, Primary>();

  /** @param queued is told how many zones wait for their turn */
  constructor(clock: Clock, most: number, queued: Gauge) {
    this.#clock = clock;
    this.#most = most;
    this.#queued = queued;
  }

  /** Runs the task when the primary has a turn. @throws Error if it was silent a moment ago, and what the task throws */
  async run<T>({ host, port }: RemoteServer, task: () => Promise<T>): Promise<T> {
    const where = printHostPort(host, port);
    let primary = this.#primaries.get(where);
    if (primary === undefined)
      this.#primaries.set(where, (primary = { running: 0, waiting: [], silentUntil: -Infinity }));
    await this.#turn(primary);
    const begun = this.#clock.now();
    try {
      if (begun < primary.silentUntil) throw new Error(`${where} did not answer a moment ago`);
      return await task();
    } catch (error) {
      const now = this.#clock.now();
      if (now - begun >= SILENT_AFTER_MS) primary.silentUntil = now + SILENT_FOR_MS;
      throw error;
    } finally {
      // The place goes to the transfer that has waited longest.
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
