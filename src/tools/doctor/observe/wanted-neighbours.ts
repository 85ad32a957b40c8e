/**
 * Who asks the local network for whom, and whether its lookups begin when it gives up: a kernel
 * asks three times, a second apart, for a host that it has packets for, and tells the program a
 * second after the last time that there is none (RFC 4861 section 10, as Linux does for ARP, too).
 * A query that waits for this is never sent, and the program goes on to its next name server.
 */
import { BoundedMap } from './bounded-map.ts';
import { NEIGHBOUR_GIVEN_UP_MS } from '../thresholds/transport.ts';

const PAIRS_MAX = 2000;
/** Addresses of one asker that are followed. */
const ADDRESSES_MAX = 20;
/** Times that are remembered of each: lookups are told of some time after they began. */
const TIMES_MAX = 64;

/** What one asks for, and its lookups since it did so first. */
export interface Wanted {
  readonly asker: string;
  readonly address: string;
  requests: number;
  /** Lookups that began when it gave up, and all others. */
  late: number;
  otherwise: number;
  /**
   * What share of the time is one in which it has just given up: how likely it is that a lookup
   * begins then by chance.
   */
  readonly chance: number;
}

/** All that was asked for. */
export class WantedNeighbours {
  readonly #pairs: BoundedMap<string, Requests> = new BoundedMap(PAIRS_MAX);
  readonly #byAsker = new Map<string, Requests[]>();

  asked(asker: string, address: string, timeMs: number): void {
    const requests = this.#pairs.at(`${asker} ${address}`, () => {
      const made = new Requests(asker, address);
      const theirs = this.#byAsker.get(asker);
      if (theirs === undefined) this.#byAsker.set(asker, [made]);
      else if (theirs.length < ADDRESSES_MAX) theirs.push(made);
      return made;
    });
    requests?.add(timeMs);
  }

  /** A lookup of this client began. @returns whether it had just given somebody up */
  begun(client: string, startMs: number): boolean {
    let late = false;
    for (const requests of this.#byAsker.get(client) ?? [])
      if (requests.begun(startMs)) late = true;
    return late;
  }

  get list(): readonly Wanted[] {
    return this.#pairs.list;
  }
}

class Requests implements Wanted {
  readonly asker: string;
  readonly address: string;
  requests: number = 0;
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
    this.requests++;
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

  get chance(): number {
    const spanMs = this.#lastMs - this.#firstMs + NEIGHBOUR_GIVEN_UP_MS.to;
    return Math.min(1, (this.#givenUpMs + givenUp(Infinity)) / spanMs);
  }
}

/** How much of a time without a request is one in which it has just given up, milliseconds. */
function givenUp(sinceMs: number): number {
  const { from, to } = NEIGHBOUR_GIVEN_UP_MS;
  return Math.max(0, Math.min(sinceMs, to) - from);
}
