/** What becomes of queries from sockets that never got a reply, and meanwhile of those from sockets that did: by the second. */
import { isLost, type SeenExchange } from '../exchanges/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';

/** Seconds that are looked at one by one: two hours. */
const SECONDS_MAX = 7200;

/** Queries of one kind of sockets. */
export interface Tally {
  asked: number;
  lost: number;
}

/** Both kinds of sockets in the same time. */
export interface Ages {
  readonly fresh: Tally;
  readonly known: Tally;
}

/** Compares new sockets with those that have been answered. */
export class NewSockets {
  readonly #seconds: BoundedMap<number, Ages> = new BoundedMap(SECONDS_MAX);

  /** @param isKnown whether the socket had got a reply when the query was sent */
  add(exchange: SeenExchange, isKnown: boolean): void {
    const second = this.#seconds.at(Math.floor(exchange.sentMs / 1000), noAges);
    if (second === null) return;
    const tally = isKnown ? second.known : second.fresh;
    tally.asked++;
    if (isLost(exchange)) tally.lost++;
  }

  /** The sum over the seconds in which queries of new sockets got lost. */
  get meanwhile(): Ages {
    const sum = noAges();
    for (const { fresh, known } of this.#seconds.list) {
      if (fresh.lost === 0) continue;
      sum.fresh.asked += fresh.asked;
      sum.fresh.lost += fresh.lost;
      sum.known.asked += known.asked;
      sum.known.lost += known.lost;
    }
    return sum;
  }
}

function noAges(): Ages {
  return { fresh: { asked: 0, lost: 0 }, known: { asked: 0, lost: 0 } };
}
