/**
 * How the connections of a thread share it. One turn of the event loop serves a bounded number of queries, so that new connections
 * (the runtime lets in one a turn), datagrams and replies of upstreams wait for milliseconds, however much others have sent.
 */

/** Queries of a turn of the event loop that connections with more than a few have: some two milliseconds. */
const TURN_QUERIES = 256;
/** The same of a turn that has let in a connection: others may wait to be let in. */
const HURRIED_QUERIES = 32;
/** Queries of one connection that are served before others have their turn. */
const LONG = 64;
/** What a connection that says something new is served at once, even when the turn's queries are used up. */
const SHORT = 16;

/** Places of those that have had their turn are cleared away together. */
const CLEARED = 256;

/** A connection with queries that wait for its turn. */
export interface TurnTaker {
  /** Serves some of what waits, and calls `wait` if that was not all. */
  takeTurn(): void;
}

/**
 * First come, first served, of those that wait. Nobody is forgotten: whenever somebody waits, or the turn's queries are used up, an
 * immediate is under way, and each run of it ends by seeing to the next one.
 */
export class Turns {
  #queue: TurnTaker[] = [];
  /** The first of the queue that has not had its turn. */
  #first = 0;
  /** Queries left of this turn of the event loop. */
  #left = TURN_QUERIES;
  #armed = false;

  /** Queries that a connection may be served at once for what it has just sent. */
  get allowance(): number {
    return Math.max(SHORT, Math.min(LONG, this.#left));
  }

  /** A query has been taken, or what is worth so many. */
  count(queries = 1): void {
    this.#left -= queries;
    if (this.#left <= 0) this.#arm();
  }

  /** A connection has been let in. */
  hurry(): void {
    this.#left = Math.min(this.#left, HURRIED_QUERIES);
    this.#arm();
  }

  /** The connection gets its turn: `allowance` queries. It must not wait already. */
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
    try {
      do {
        const taker = this.#queue[this.#first];
        if (taker === undefined) break;
        this.#first++;
        taker.takeTurn();
      } while (this.#left > 0);
    } finally {
      this.#left = TURN_QUERIES;
      this.#clear();
      if (this.#queue.length > 0) this.#arm();
    }
  };

  /** Those that have had their turn make room, all at once. */
  #clear(): void {
    if (this.#first < this.#queue.length && this.#first < CLEARED) return;
    this.#queue.splice(0, this.#first);
    this.#first = 0;
  }
}

/** Those of this thread. */
export const turns: Turns = new Turns();
