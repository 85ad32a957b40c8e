/**
 * Requests on the local network, and whether lookups begin when they fail. A kernel asks three
 * times, a second apart, for a host that it has packets for. A second later it reports to the
 * program that there is none (RFC 4861 section 10; Linux does so for ARP, too). A query that waits
 * for this is never sent, and the program tries its next name server.
 */
import { BoundedMap } from './bounded-map.ts';
import { NEIGHBOUR_GIVEN_UP_MS } from '../thresholds/transport.ts';

const PAIRS_MAX = 2000;
/** Addresses of one asker that are followed. */
const ADDRESSES_MAX = 20;
/** Times stored for each: lookups are known some time after they began. */
const TIMES_MAX = 64;

export class WantedNeighbours {
  readonly #pairs: BoundedMap<string, WantedNeighbour> = new BoundedMap(PAIRS_MAX);
  readonly #byAsker = new Map<string, WantedNeighbour[]>();

  asked(asker: string, address: string, timeMs: number): void {
    const requests = this.#pairs.at(`${asker} ${address}`, () => {
      const made = new WantedNeighbour(asker, address);
      const theirs = this.#byAsker.get(asker);
      if (theirs === undefined) this.#byAsker.set(asker, [made]);
      else if (theirs.length < ADDRESSES_MAX) theirs.push(made);
      return made;
    });
    requests?.add(timeMs);
  }

  /** A lookup of this client began. @returns true if a request had just failed */
  begun(client: string, startMs: number): boolean {
    let late = false;
    for (const requests of this.#byAsker.get(client) ?? [])
      if (requests.begun(startMs)) late = true;
    return late;
  }

  get list(): readonly WantedNeighbour[] {
    return this.#pairs.list;
  }
}

/** The requests of one host, and its lookups since the first of them. */
export class WantedNeighbour {
  readonly asker: string;
  readonly address: string;
  /** Lookups that began when it gave up, and all others. */
  late: number = 0;
  otherwise: number = 0;
  #times: number[] = [];
  #firstMs = Infinity;
  #lastMs = -Infinity;
  /** Time in which it has just given up, before the last request. */
  #givenUpMs = 0;

  constructor(asker: string, address: string) {
    this.asker = asker;
    this.address = address;
  }

  add(timeMs: number): void {
    if (this.#lastMs > 0) this.#givenUpMs += givenUp(timeMs - this.#lastMs);
    this.#firstMs = Math.min(this.#firstMs, timeMs);
    this.#lastMs = Math.max(this.#lastMs, timeMs);
    if (this.#times.length >= TIMES_MAX) this.#times = this.#times.slice(TIMES_MAX / 2);
    this.#times.push(timeMs);
  }

  begun(startMs: number): boolean {
    const last = this.#times.findLast((ms) => ms <= startMs);
    if (last === undefined) return false;
    const sinceMs = startMs - last;
    const isLate = sinceMs >= NEIGHBOUR_GIVEN_UP_MS.from && sinceMs < NEIGHBOUR_GIVEN_UP_MS.to;
    if (isLate) this.late++;
    else this.otherwise++;
    return isLate;
  }

  /** The share of time shortly after a failed request: the probability that a lookup begins then by chance. */
  get chance(): number {
    const spanMs = this.#lastMs - this.#firstMs + NEIGHBOUR_GIVEN_UP_MS.to;
    return Math.min(1, (this.#givenUpMs + givenUp(Infinity)) / spanMs);
  }
}

/** The part of a time without requests that is shortly after a failed one, milliseconds. */
function givenUp(sinceMs: number): number {
  const { from, to } = NEIGHBOUR_GIVEN_UP_MS;
  return Math.max(0, Math.min(sinceMs, to) - from);
}
