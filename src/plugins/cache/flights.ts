import type { Query } from '../../wire/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { FLAG } from '../../wire/iana.ts';

/** One question that is being asked further down, and everybody who waits for its reply. */
export class Flight {
  readonly query: Query;
  /** The reply as it goes out to all who wait; set at once by who makes the flight. */
  promise: Promise<Reply> = never;
  waiters = 0;
  /** Whether the reply has come, though perhaps not been looked at. */
  landed = false;
  /** Another one whose name has the same hash; the table's own. */
  next: Flight | null = null;

  constructor(query: Query) {
    this.query = query;
  }
}

const never = new Promise<never>(() => {});

/** The questions that are under way, so that the same question is asked only once at a time. */
export class Flights {
  /** How many queries wait for a question that another one has asked. */
  waiting = 0;
  /** The first of those that have this hash. */
  readonly #byHash = new Map<number, Flight>();

  /** The flight that asks just what this query asks, or null. */
  find(query: Query): Flight | null {
    for (let flight = this.#first(query); flight !== null; flight = flight.next) {
      if (flight.query.type === query.type && alike(flight.query, query)) return flight;
    }
    return null;
  }

  /** Another type of the same name that is under way, its reply not there yet; null: none. */
  sibling({ query }: Flight): Flight | null {
    for (let flight = this.#first(query); flight !== null; flight = flight.next) {
      if (!flight.landed && flight.query.type !== query.type && alike(flight.query, query))
        return flight;
    }
    return null;
  }

  add(flight: Flight): void {
    flight.next = this.#first(flight.query);
    this.#byHash.set(flight.query.hash, flight);
  }

  remove(flight: Flight): void {
    const { hash } = flight.query;
    const first = this.#first(flight.query);
    if (first === flight) {
      if (flight.next === null) this.#byHash.delete(hash);
      else this.#byHash.set(hash, flight.next);
    } else {
      for (let before = first; before !== null; before = before.next) {
        if (before.next === flight) before.next = flight.next;
      }
    }
    flight.next = null;
    this.waiting -= flight.waiters;
    flight.waiters = 0;
  }

  #first(query: Query): Flight | null {
    return this.#byHash.get(query.hash) ?? null;
  }
}

/** Same name, class, DO, CD, and kind of transport: a client on a stream must not get what was cut for a datagram. */
function alike(a: Query, b: Query): boolean {
  if (a.class !== b.class || a.dnssecOk !== b.dnssecOk || ((a.flags ^ b.flags) & FLAG.CD) !== 0)
    return false;
  if ((a.proto === 'udp') !== (b.proto === 'udp') || a.nameLength !== b.nameLength) return false;
  for (let i = 0; i < a.nameLength; i++) if (a.folded[i] !== b.folded[i]) return false;
  return true;
}
