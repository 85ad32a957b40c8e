import type { Clock } from '../base/clock.ts';

/** A client's connection, as far as its place among the others is concerned. */
export interface EvictableConnection {
  /** Whether somebody waits for something: closing it would lose a reply. */
  readonly busy: boolean;
  /** Takes nothing new; ends once what is under way has left. */
  finish(): void;
  /** Ends at once. */
  destroy(): void;
}

/** How many of the longest silent connections are looked at for one that is idle. */
const LOOKED_AT = 64;

/**
 * The connections of one listener, bounded: at the limit the longest idle one goes, never the newcomer. Whoever opens many can
 * keep others from staying, but not from coming.
 */
export class ConnectionTable<T extends EvictableConnection> implements Iterable<T> {
  /** The longest silent first. */
  readonly #all = new Set<T>();
  readonly #evicted: () => void;
  #onEmpty: (() => void) | null = null;

  /** @param evicted called for each connection that had to make room */
  constructor(evicted: () => void) {
    this.#evicted = evicted;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Takes one more in, after room has been made for it among `limit`. */
  add(connection: T, limit: number): void {
    while (this.#all.size >= Math.max(1, limit)) {
      const victim = this.#victim();
      this.delete(victim);
      this.#evicted();
      victim.destroy();
    }
    this.#all.add(connection);
  }

  /** It has done something: it is the youngest again. */
  touch(connection: T): void {
    if (this.#all.delete(connection)) this.#all.add(connection);
  }

  /** @returns whether it was still there */
  delete(connection: T): boolean {
    const had = this.#all.delete(connection);
    if (had && this.#all.size === 0) this.#onEmpty?.();
    return had;
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#all.values();
  }

  /** Ends all: in order for at most `graceMs`, then at once. */
  async close(clock: Clock, graceMs: number): Promise<void> {
    for (const connection of this.#all) connection.finish();
    if (this.#all.size > 0) await this.#emptied(clock, graceMs);
    for (const connection of this.#all) connection.destroy();
  }

  /** The longest idle one; if the longest silent ones all wait for something, the first of them. */
  #victim(): T {
    let first: T | null = null;
    let looked = 0;
    for (const connection of this.#all) {
      if (!connection.busy) return connection;
      first ??= connection;
      if (++looked === LOOKED_AT) break;
    }
    return first!;
  }

  #emptied(clock: Clock, graceMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = clock.after(graceMs, resolve);
      this.#onEmpty = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}
