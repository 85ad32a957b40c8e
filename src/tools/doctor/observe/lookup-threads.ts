/**
 * Whether a client's lookups wait for a few threads: then there are never more at a time, and the
 * next one begins as soon as one ends.
 */
import type { SeenLookup } from '../../capture/pair/seen-exchange.ts';

/** Lookups of one client that are looked at: the first ones. */
const LOOKUPS_MAX = 500;
/** More at a time are no few threads: libuv has four. */
const THREADS_MAX = 4;
/** A thread that is free takes the next lookup within this time, milliseconds. */
const HEEL_MS = 2;
/** Fewer that began with all threads at work do not say enough. */
const FULL_MIN = 30;
/** So many of these follow another one's end; the rest begin a batch. */
const HANDED = 0.8;

/** Who waits for less than this feels nothing, milliseconds. */
const LONG_MS = 10;

/** Whether it takes long enough for others to wait for it. */
export function isLong({ startMs, endMs }: SeenLookup): boolean {
  return endMs - startMs >= LONG_MS;
}

/** What lookups of a client wait for. */
export interface FewThreads {
  /** The most lookups at a time. */
  readonly threads: number;
  /** Lookups that began with all other threads at work. */
  readonly full: number;
  /** Of these, those that began as soon as another one had ended. */
  readonly handed: number;
  /** How long a lookup takes, milliseconds. */
  readonly meanMs: number;
}

/** When the lookups of a client began and ended. */
export class LookupThreads {
  readonly #times: { readonly startMs: number; readonly endMs: number }[] = [];

  add({ startMs, endMs }: SeenLookup): void {
    if (this.#times.length < LOOKUPS_MAX) this.#times.push({ startMs, endMs });
  }

  /** Null: nothing waits, as far as is seen. */
  get few(): FewThreads | null {
    const times = this.#times.toSorted((one, other) => one.startMs - other.startMs);
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
      if (startMs - endedMs <= HEEL_MS) handed++;
    }
    if (threads < 2 || full < FULL_MIN || handed < HANDED * full) return null;
    const sumMs = times.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
    return { threads, full, handed, meanMs: sumMs / times.length };
  }
}
