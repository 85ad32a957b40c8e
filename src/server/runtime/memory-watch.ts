/** Detects that this process takes nearly all the memory that it may. */
import type { Clock } from '../base/clock.ts';
import { groupLines } from '../base/control-groups.ts';

/** Memory is short above this part of the limit: the rest is for allocations of that moment. */
const SHORT = 3 / 4;
/** A result is valid for this long, milliseconds: a measurement takes some 50 µs. */
const LOOK_MS = 50;

/** Says whether memory is short; looks only when asked, and not each time. */
export class MemoryWatch {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #own: () => number;
  #lookedAt = -Infinity;
  #short = false;

  /**
   * @param limit bytes that the process may take; Infinity: memory is never short
   * @param own bytes that only this process has
   */
  constructor(clock: Clock, limit: number, own: () => number = ownBytes) {
    this.#clock = clock;
    this.#most = limit * SHORT;
    this.#own = own;
  }

  get short(): boolean {
    if (this.#most === Infinity) return false;
    const now = this.#clock.now();
    if (now - this.#lookedAt >= LOOK_MS) {
      this.#lookedAt = now;
      this.#short = this.#own() > this.#most;
    }
    return this.#short;
  }
}

/** Bytes of this process that no file holds, which the system cannot take back; 0: unknown. */
function ownBytes(): number {
  const line = groupLines('/proc/self/status').find((each) => each.startsWith('RssAnon:'));
  return 1024 * Number(/\d+/.exec(line ?? '')?.[0] ?? 0);
}
