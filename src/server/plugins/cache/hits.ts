/** Hits of each entry, for `prefetch`. */
import { larger } from '../../base/copy-bytes.ts';
import type { Clock } from '../../base/clock.ts';
import type { Query } from '../../transport/query.ts';

/** Each entry's recent hits, by slot. Uses no memory unless hits are counted. */
export class HitCounts {
  readonly #counting: boolean;
  #hits = new Uint32Array(0);
  #last = new Float64Array(0);

  constructor(counting: boolean) {
    this.#counting = counting;
  }

  grow(slots: number): void {
    if (!this.#counting) return;
    this.#hits = larger(this.#hits, new Uint32Array(slots));
    this.#last = larger(this.#last, new Float64Array(slots));
  }

  /**
   * Counts a hit. After a gap longer than `gapMs`, counting starts again.
   * @returns the number of hits so far
   */
  count(slot: number, query: Query, clock: Clock, gapMs: number): number {
    const now = query.arrived > 0 ? query.arrived : clock.now();
    const hits = now - this.#last[slot]! > gapMs ? 1 : this.#hits[slot]! + 1;
    this.#last[slot] = now;
    this.#hits[slot] = hits;
    return hits;
  }

  reset(slot: number): void {
    if (this.#counting) this.#hits[slot] = this.#last[slot] = 0;
  }

  of(slot: number): number {
    return this.#counting ? this.#hits[slot]! : 0;
  }

  inherit(slot: number, hits: number, now: number): void {
    if (!this.#counting) return;
    this.#hits[slot] = hits;
    this.#last[slot] = now;
  }
}
