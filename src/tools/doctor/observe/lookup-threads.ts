/**
 * Detects lookups that queue behind a few threads: there is a maximum at a time, and the next one
 * begins as soon as one ends.
 */
import type { SeenLookup } from '../../capture/pair/seen-exchange.ts';
import {
  HANDED_SHARE,
  MIN_FULL_LOOKUPS,
  NEXT_LOOKUP_MS,
  THREAD_WAIT_MS,
} from '../thresholds/lateness.ts';

/** Lookups examined for one client: the first ones. */
const LOOKUPS_MAX = 500;
/** More at a time are not a small thread pool: libuv has four. */
const THREADS_MAX = 4;

/** True if it takes long enough for others to wait for it. */
export function isLong({ startMs, endMs }: SeenLookup): boolean {
  return endMs - startMs >= THREAD_WAIT_MS;
}

/** The thread pool that a client's lookups wait for. */
export interface FewThreads {
  readonly threads: number;
  /** Lookups that began with all other threads at work. */
  readonly full: number;
  /** Of these, those that began as soon as another one had ended. */
  readonly handed: number;
  /** The duration of a lookup, milliseconds. */
  readonly meanMs: number;
}

export class LookupThreads {
  /** Start and end of each lookup. An object for each would take five times the memory. */
  readonly #times: number[] = [];

  add({ startMs, endMs }: SeenLookup): void {
    if (this.#times.length < 2 * LOOKUPS_MAX) this.#times.push(startMs, endMs);
  }

  /** Null: nothing waits, as far as is seen. */
  get few(): FewThreads | null {
    const times = Array.from({ length: this.#times.length / 2 }, (_, at) => ({
      startMs: this.#times[2 * at]!,
      endMs: this.#times[2 * at + 1]!,
    })).toSorted((one, other) => one.startMs - other.startMs);
    let [threads, full, handed] = [0, 0, 0];
    let active: readonly number[] = [];
    let endedMs = -Infinity;
    for (const { startMs, endMs } of times) {
      for (const end of active) if (end <= startMs && end > endedMs) endedMs = end;
      active = [...active.filter((end) => end > startMs), endMs];
      if (active.length > THREADS_MAX) return null;
      if (active.length > threads) [threads, full, handed] = [active.length, 0, 0];
      if (active.length < threads) continue;
      full++;
      if (startMs - endedMs <= NEXT_LOOKUP_MS) handed++;
    }
    if (threads < 2 || full < MIN_FULL_LOOKUPS || handed < HANDED_SHARE * full) return null;
    const sumMs = times.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
    return { threads, full, handed, meanMs: sumMs / times.length };
  }
}
