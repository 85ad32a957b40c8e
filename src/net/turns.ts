/** Turns of connections: how one thread is shared among clients that ask more than it can answer at once. */
import type { Clock } from '../base/clock.ts';

/** A connection with queries that wait for its turn. It is in at most one queue of one `Turns`. */
export interface TurnTaker {
  /** The queue's own: who comes after this one. */
  nextTaker: TurnTaker | null;
  /** Whether it waits for a turn. */
  queued: boolean;
  /** It is its turn: serves up to `Turns.quantum` queries, and waits again if it has more. */
  takeTurn(): void;
}

/**
 * How long turns are taken before the event loop goes on, milliseconds. The runtime lets in one new connection each time round,
 * so this is what each of those before a newcomer costs it, and datagrams wait no longer either.
 */
const SLICE_MS = 1;
/** Queries of one turn while others wait, and while nobody does: fewer system calls then, still under a millisecond. */
const QUANTUM = 16;
const QUANTUM_ALONE = 128;
/** So many queries may be served as they come before the time is looked at. */
const UNWATCHED = 64;

/**
 * Connections are served as their bytes come, while there is time in this round of the event loop. Beyond that they wait, in two
 * queues as RFC 8290 has them for flows: who comes with something new goes before those that had a turn and have still more to
 * ask, and these take theirs one after the other. So whoever asks little waits for one turn of each who does so, too, however
 * much the others have sent. One for all connections of a thread. Nothing is allocated here.
 */
export class Turns {
  readonly #clock: Clock;
  readonly #fresh = new Queue();
  readonly #old = new Queue();
  /** Another round of the event loop is asked for. */
  #armed = false;
  /** Queries served as they came, in this round. */
  #straight = 0;
  /** Somebody new has been let in. */
  #hurried = false;
  /** Until when what comes is served as it comes, in this round. */
  #until = Infinity;

  /** Counts rounds in which anybody waited or much was served: who has used its quantum up has a new one in the next. */
  round = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Queries that one connection may have served in one turn. */
  get quantum(): number {
    return this.#isAwaited ? QUANTUM : QUANTUM_ALONE;
  }

  get #isAwaited(): boolean {
    return this.#fresh.first !== null || this.#old.first !== null;
  }

  /** Whether what comes now may be served at once. @param now the clock's time */
  free(now: number): boolean {
    return now < this.#until;
  }

  /** Whether a turn that began then has taken long enough, however few queries it was. */
  isLong(began: number): boolean {
    return this.#clock.now() - began >= SLICE_MS;
  }

  /** So many queries were served as they came. */
  served(queries: number, now: number): void {
    this.#straight += queries;
    if (this.#straight >= UNWATCHED && !this.#armed) this.#arm(now);
  }

  /** Has it wait for a turn. @param had it had one, or part of one, and has more to ask */
  wait(taker: TurnTaker, had: boolean, now: number): void {
    if (taker.queued) return;
    taker.queued = true;
    (had ? this.#old : this.#fresh).add(taker);
    if (!this.#armed) this.#arm(now);
  }

  /** A connection has been let in, and more may wait for that: the round that follows is as short as can be. */
  hurry(): void {
    this.#hurried = true;
  }

  #arm(now: number): void {
    this.#armed = true;
    this.#until = now + SLICE_MS;
    setImmediate(this.#run);
  }

  readonly #run = (): void => {
    const clock = this.#clock;
    this.round++;
    this.#straight = 0;
    const end = clock.now() + SLICE_MS;
    // In turn of both: who has something new does not keep the others from theirs.
    do {
      this.#give(this.#fresh);
      this.#give(this.#old);
    } while (!this.#hurried && this.#isAwaited && clock.now() < end);
    this.#hurried = false;
    if (this.#isAwaited) {
      this.#until = clock.now() + SLICE_MS;
      setImmediate(this.#run);
    } else {
      this.#armed = false;
      this.#until = Infinity;
    }
  };

  #give(queue: Queue): void {
    const taker = queue.take();
    if (taker === null) return;
    taker.queued = false;
    taker.takeTurn();
  }
}

/** First in, first out, linked through its members. */
class Queue {
  first: TurnTaker | null = null;
  #last: TurnTaker | null = null;

  add(taker: TurnTaker): void {
    if (this.#last === null) this.first = taker;
    else this.#last.nextTaker = taker;
    this.#last = taker;
  }

  take(): TurnTaker | null {
    const taker = this.first;
    if (taker === null) return null;
    this.first = taker.nextTaker;
    if (this.first === null) this.#last = null;
    taker.nextTaker = null;
    return taker;
  }
}
