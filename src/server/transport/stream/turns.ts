/**
 * Shares a thread's time between its connections. One turn of the event loop serves a limited number of queries. New
 * connections (Node accepts one per turn), datagrams and upstream replies therefore wait milliseconds at most.
 */

/**
 * Number of queries served per turn of the event loop for all connections that have more than a few. They take about
 * two milliseconds.
 */
const TURN_QUERIES = 256;
/** The same for a turn that accepted a connection, because more may be waiting to be accepted. */
const HURRIED_QUERIES = 32;
/** Number of queries served for one connection before others get their turn. */
const LONG = 64;
/** Number of queries served at once for a connection with new input, even if the turn's budget is exhausted. */
const SHORT = 16;

/**
 * Milliseconds of work per turn for all connections. After that, only the first query of new input is served at once,
 * because a thousand connections may have new input.
 */
const TURN_MS = 10;

/** Maximum number of used queue entries that may accumulate before they are removed together. */
const CLEARED = 256;

/** A connection whose queries are waiting for their turn. */
export interface TurnTaker {
  /** Serves some of the waiting queries, and calls `wait` if any remain. */
  takeTurn(): void;
}

/**
 * A queue of waiting connections, served in order of arrival. A `setImmediate` is pending while the queue is not empty
 * or the turn's budget is exhausted. Each run schedules the next if necessary.
 */
export class Turns {
  #queue: TurnTaker[] = [];
  /** Index of the first entry that has not yet had its turn. */
  #first = 0;
  /** Number of queries that may still be served in this turn of the event loop. */
  #left = TURN_QUERIES;
  #spentMs = 0;
  #armed = false;

  /** Maximum number of queries from one connection that are served at once. */
  get allowance(): number {
    if (this.#spentMs >= TURN_MS) return 1;
    return Math.max(SHORT, Math.min(LONG, this.#left));
  }

  /** Counts one query, or work equivalent to several. */
  count(queries = 1): void {
    this.#left -= queries;
    if (this.#left <= 0) this.#arm();
  }

  spend(ms: number): void {
    this.#spentMs += ms;
    if (this.#spentMs < TURN_MS) return;
    this.#left = 0;
    this.#arm();
  }

  hurry(): void {
    this.#left = Math.min(this.#left, HURRIED_QUERIES);
    this.#arm();
  }

  /** Queues a connection, which later gets a turn of `allowance` queries. It must not already be in the queue. */
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
    // Waiting connections have a share of their own, because otherwise new input could starve them.
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

  /** Removes all used entries at once. */
  #clear(): void {
    if (this.#first < this.#queue.length && this.#first < CLEARED) return;
    this.#queue.splice(0, this.#first);
    this.#first = 0;
  }
}

export const turns: Turns = new Turns();
