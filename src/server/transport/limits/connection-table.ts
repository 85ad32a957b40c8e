import type { Clock } from '../../base/clock.ts';

/** A client connection from the table's point of view: something that can be evicted. */
export interface EvictableConnection {
  /** True if it has pending replies, which would be lost if it were closed. */
  readonly busy: boolean;
  /** Stops reading, and closes once the replies in flight have been sent. */
  finish(): void;
  /** Ends at once. */
  destroy(): void;
}

/** Number of least recently used connections that are examined to find an idle one. */
const LOOKED_AT = 64;

/**
 * A listener's connections, limited in number. At the limit, the connection that has been idle longest is closed, but
 * never the new one. A client that opens many connections can shorten the life of other clients' idle connections, but
 * cannot keep other clients from connecting.
 */
export class ConnectionTable<T extends EvictableConnection> implements Iterable<T> {
  /** In order of last use, least recent first. */
  readonly #all = new Set<T>();
  readonly #evicted: () => void;
  #onEmpty: (() => void) | null = null;

  /** @param evicted called for each connection closed to make room */
  constructor(evicted: () => void) {
    this.#evicted = evicted;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Adds a connection. If there are already `limit` of them, another is closed to make room. */
  add(connection: T, limit: number): void {
    while (this.#all.size >= Math.max(1, limit)) this.evict();
    this.#all.add(connection);
  }

  /** Closes the connection that has been idle longest, or the least recently used if none is idle. */
  evict(): void {
    if (this.#all.size === 0) return;
    const victim = this.#victim();
    this.delete(victim);
    this.#evicted();
    victim.destroy();
  }

  /**
   * Closes the connection that has been idle longest, because memory is short. Connections with pending replies stay
   * open.
   * @param spared number of connections that stay open in any case
   * @returns false if no connection was closed
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

  touch(connection: T): void {
    if (this.#all.delete(connection)) this.#all.add(connection);
  }

  /** @returns true if it was in the table */
  delete(connection: T): boolean {
    const had = this.#all.delete(connection);
    if (had && this.#all.size === 0) this.#onEmpty?.();
    return had;
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#all.values();
  }

  /** Closes all connections, gracefully for up to `graceMs`, then immediately. */
  async close(clock: Clock, graceMs: number): Promise<void> {
    for (const connection of this.#all) connection.finish();
    if (this.#all.size > 0) await this.#emptied(clock, graceMs);
    for (const connection of this.#all) connection.destroy();
  }

  /**
   * Returns the connection to evict. This is the least recently used idle connection, or simply the first if all those
   * examined are busy.
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
