import type { Clock } from '../../base/clock.ts';

/** A client's connection as the table sees it: something that can be evicted. */
export interface EvictableConnection {
  /** True if replies are due on it: closing it would lose one. */
  readonly busy: boolean;
  /** Reads nothing new; closes once the replies in flight have been sent. */
  finish(): void;
  /** Ends at once. */
  destroy(): void;
}

/** The number of least recently used connections that are checked for an idle one. */
const LOOKED_AT = 64;

/**
 * The connections of one listener, limited in number: at the limit the connection that has been
 * idle longest is closed, never the new one. A client that opens many connections can shorten the
 * life of others' idle connections, but cannot keep others from connecting.
 */
export class ConnectionTable<T extends EvictableConnection> implements Iterable<T> {
  /** In the order of their last use, least recent first. */
  readonly #all = new Set<T>();
  readonly #evicted: () => void;
  #onEmpty: (() => void) | null = null;

  /** @param evicted called for each connection that was closed to make room */
  constructor(evicted: () => void) {
    this.#evicted = evicted;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Adds a connection, after making room for it if there are `limit` already. */
  add(connection: T, limit: number): void {
    while (this.#all.size >= Math.max(1, limit)) this.evict();
    this.#all.add(connection);
  }

  /** Closes the one that has been idle longest, or the least recently used if none is idle. */
  evict(): void {
    if (this.#all.size === 0) return;
    const victim = this.#victim();
    this.delete(victim);
    this.#evicted();
    victim.destroy();
  }

  /**
   * Closes the connection that has been idle longest, when memory is short. Connections with
   * pending replies stay. @param spared the number of connections that stay in any case @returns
   * false: none was closed
   */
  evictIdle(spared: number): boolean {
    if (this.#all.size < spared) return false;
    const victim = this.#victim();
    if (victim.busy) return false;
    this.delete(victim);
    this.#evicted();
    victim.destroy();
    return true;
  }

  /** Marks a connection as just used. */
  touch(connection: T): void {
    if (this.#all.delete(connection)) this.#all.add(connection);
  }

  /** @returns whether it was in the table */
  delete(connection: T): boolean {
    const had = this.#all.delete(connection);
    if (had && this.#all.size === 0) this.#onEmpty?.();
    return had;
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#all.values();
  }

  /** Closes all: in an orderly way for at most `graceMs`, then at once. */
  async close(clock: Clock, graceMs: number): Promise<void> {
    for (const connection of this.#all) connection.finish();
    if (this.#all.size > 0) await this.#emptied(clock, graceMs);
    for (const connection of this.#all) connection.destroy();
  }

  /**
   * The connection to evict: the least recently used idle one; if all that are checked are busy,
   * the first of them.
   */
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
