/** Versions of zones that nobody answers from any more, and the memory that hangs on them. */
import type { Clock, Timer } from '../base/clock.ts';
import { collectMemory } from '../base/settle-memory.ts';
import { bytesOf, type PackedZone } from './packed-zone.ts';

/** Less is not worth a pause, bytes. */
const WORTH = 1024 * 1024;
/** Zones that change often are collected together: one pause in so many milliseconds delays fewer than one query in a thousand. */
const AFTER_MS = 15_000;
/** More is not waited for, bytes. */
const MOST = 64 * 1024 * 1024;

/**
 * Has the old versions of zones collected in this thread. The runtime would leave them for as long as it has no other reason: shared
 * memory counts as nothing for it, and a thread that answers leaves no garbage. Each thread that has a view of a zone holds all of it.
 */
export class ReplacedZones {
  readonly #clock: Clock;
  #bytes = 0;
  #timer: Timer | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** This version has been let go. */
  add(packed: PackedZone | null): void {
    if (packed === null) return;
    this.#bytes += bytesOf(packed);
    if (this.#bytes >= MOST) this.#plan(0);
    else if (this.#bytes >= WORTH) this.#plan(AFTER_MS);
  }

  #plan(afterMs: number): void {
    if (this.#timer !== null && afterMs > 0) return;
    this.#timer?.cancel();
    this.#timer = this.#clock.after(afterMs, () => {
      this.#timer = null;
      this.#bytes = 0;
      collectMemory();
    });
  }
}
