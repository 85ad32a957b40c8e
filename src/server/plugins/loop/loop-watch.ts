/** Decides whether there is a forwarding loop. */
import { sleep, type Clock } from '../../base/clock.ts';

/** Number of sightings that do not prove a loop. One is the probe itself, and another may be a retry. */
const SIGHTINGS_MAX = 2;
const RETRY_MS = 1000;
const GIVE_UP_MS = 30_000;
/** Number of ms after an answered probe during which copies of it may still come back. */
const LINGER_MS = 2000;

export interface LoopSighting {
  readonly from: string;
  readonly to: string;
}

export interface LoopWatchParts {
  readonly clock: Clock;
  /** Sends the probe. Resolves to true if it was answered. */
  readonly probe: () => Promise<boolean>;
  readonly found: (sighting: LoopSighting) => void;
  /** Called when the search has ended. */
  readonly over: () => void;
}

/**
 * Queries a random name that no client can know, and counts how often the query arrives. If the server forwards to
 * itself, directly or through others, it arrives repeatedly.
 */
export class LoopWatch {
  readonly #parts: LoopWatchParts;
  #seen = 0;
  #watching = true;

  constructor(parts: LoopWatchParts) {
    this.#parts = parts;
  }

  /** Resolves once no loop was found, or after 30 s without a result. */
  async run(): Promise<void> {
    const { clock, probe } = this.#parts;
    const end = clock.now() + GIVE_UP_MS;
    while (this.#watching && clock.now() < end) {
      if (await probe()) {
        await sleep(clock, LINGER_MS);
        break;
      }
      // The server was not ready yet or the reply was lost, so the queries counted may be retries of this probe.
      this.#seen = 0;
      await sleep(clock, RETRY_MS);
    }
    this.stop();
  }

  see(sighting: LoopSighting): void {
    if (!this.#watching || ++this.#seen <= SIGHTINGS_MAX) return;
    this.stop();
    this.#parts.found(sighting);
  }

  stop(): void {
    if (!this.#watching) return;
    this.#watching = false;
    this.#parts.over();
  }
}
