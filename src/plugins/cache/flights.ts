import type { Query } from '../../wire/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { FLAG } from '../../wire/iana.ts';

/** One question that is being asked further down, and everybody who waits for its reply. */
export interface Flight {
  readonly query: Query;
  /** The reply as it goes out to all who wait. */
  promise: Promise<Reply>;
  waiters: number;
  /** Whether the reply has come, though perhaps not been looked at. */
  landed: boolean;
}

/** The questions that are under way, so that the same question is asked only once at a time. */
export class Flights {
  /** How many queries wait for a question that another one has asked. */
  waiting = 0;
  readonly #byHash = new Map<number, Flight[]>();

  /** The flight that asks just what this query asks, or null. */
  find(query: Query): Flight | null {
    const flights = this.#byHash.get(query.hash);
    if (flights === undefined) return null;
    for (const flight of flights) {
      if (flight.query.type === query.type && alike(flight.query, query)) return flight;
    }
    return null;
  }

  /** Another type of the same name that is under way, its reply not there yet; null: none. */
  sibling({ query }: Flight): Flight | null {
    for (const flight of this.#byHash.get(query.hash) ?? []) {
      if (!flight.landed && flight.query.type !== query.type && alike(flight.query, query))
        return flight;
    }
    return null;
  }

  add(flight: Flight): void {
    const flights = this.#byHash.get(flight.query.hash);
    if (flights === undefined) this.#byHash.set(flight.query.hash, [flight]);
    else flights.push(flight);
  }

  remove(flight: Flight): void {
    const { hash } = flight.query;
    const left = this.#byHash.get(hash)?.filter((other) => other !== flight) ?? [];
    if (left.length === 0) this.#byHash.delete(hash);
    else this.#byHash.set(hash, left);
    this.waiting -= flight.waiters;
    flight.waiters = 0;
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
