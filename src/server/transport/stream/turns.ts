/**
 * Shares a thread's time between its connections. One turn of the event loop serves a bounded
 * number of queries. So new connections (Node accepts one per turn), datagrams and upstream replies
 * wait at most for milliseconds.
 */

/**
 * Queries that all connections with more than a few get served in one turn of the event loop: some
 * two milliseconds.
 */
const TURN_QUERIES = 256;
/** The same for a turn in which a connection was accepted: others may be waiting to be accepted. */
const HURRIED_QUERIES = 32;
/** Queries that one connection gets served before others have their turn. */
const LONG = 64;
/**
 * Queries that a connection with new input gets served at once, even if the turn's budget is used
 * up.
 */
const SHORT = 16;

/**
 * Milliseconds of work for all connections in one turn. After that, only the first query of new
 * input is served at once: a thousand connections may have some.
 */
const TURN_MS = 10;

/** The most used queue entries that accumulate before they are removed together. */
const CLEARED = 256;

/** A connection with queries that wait for their turn. */
export interface TurnTaker {
  /** Serves some of the waiting queries, and calls `wait` if there are more. */
  takeTurn(): void;
}

/**
 * A queue of waiting connections, first come, first served. A `setImmediate` is pending while the
 * queue is not empty or the turn's budget is used up. Each run schedules the next one if necessary.
 */
export class Turns {
  #queue: TurnTaker[] = [];
  /** Index of the first entry that has not had its turn. */
  #first = 0;
  /** Queries that may still be served in this turn of the event loop. */
  #left = TURN_QUERIES;
  #spentMs = 0;
  #armed = false;

  /** The most queries of a connection that are served at once. */
  get allowance(): number {
    if (this.#spentMs >= TURN_MS) return 1;
    return Math.max(SHORT, Math.min(LONG, this.#left));
  }

  /** Counts one query, or work that equals several. */
  count(queries = 1): void {
    this.#left -= queries;
    if (this.#left <= 0) this.#arm();
  }

  /** Counts the milliseconds that serving a connection took. */
  spend(ms: number): void {
    this.#spentMs += ms;
    if (this.#spentMs < TURN_MS) return;
    this.#left = 0;
    this.#arm();
  }

  /** Counts an accepted connection. */
  hurry(): void {
    this.#left = Math.min(this.#left, HURRIED_QUERIES);
    this.#arm();
  }

  /**
   * Queues a connection, which then gets a turn of `allowance` queries. It must not be queued
   * already.
   */
  wait(taker: TurnTaker): void {
    this.#queue.push(taker);
    this.#arm();
  }

  #arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    setImmediate(this.#run);
  }

  #run = (): void => {
    this.#armed = false;
    // Waiting ones have a separate part, or new input could starve them.
    this.#spentMs = 0;
    try {
      do {
        const taker = this.#queue[this.#first];
        if (taker === undefined) break;
        this.#first++;
        taker.takeTurn();
      } while (this.#left > 0);
    } finally {
      this.#left = TURN_QUERIES;
      this.#spentMs = 0;
      this.#clear();
      if (this.#queue.length > 0) this.#arm();
    }
  };

  /** Removes the used entries, all at once. */
  #clear(): void {
    if (this.#first < this.#queue.length && this.#first < CLEARED) return;
    this.#queue.splice(0, this.#first);
    this.#first = 0;
  }
}

/** The queue of this thread. */
export const turns: Turns = new Turns();
