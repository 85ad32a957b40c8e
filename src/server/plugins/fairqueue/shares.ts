/** Counts each client's in-flight queries, and decides which clients may have another one. */
import type { Clock } from '../../base/clock.ts';
import { Refusals } from './refusals.ts';

/** One in this many places is reserved for clients with few queries. */
const SPARE = 8;

/** The decision on another query: whether it may wait and, if not, whose limit was reached. */
export type ShareVerdict = 'admitted' | 'client' | 'network';

export interface Share {
  readonly client: string;
  /** The client's network, or an empty string if clients cannot forge each other's addresses. */
  readonly network: string;
  waiting: number;
}

/**
 * Shares the places for in-flight queries by dynamic thresholds (Choudhury and Hahne 1998). A client may take another
 * place while it has fewer than eight times the number of free places. Free places include spare ones, one for every
 * eight. As a result:
 * - A single client may use all places.
 * - Each of k clients that want everything gets the same part, (1 + 8) / (1 + 8 k) of the places.
 * - There are free places for further clients, because all thresholds fall as places are taken.
 * A client with many addresses could evade this with one in-flight query per address. Networks therefore have a
 * threshold as well, twice that of a client. One more place is reserved for networks without in-flight queries.
 * These thresholds depend only on the current in-flight queries. If many networks want everything, the most active ones
 * would get all places, so refusals are remembered for a while. The networks with refusals share the places equally,
 * and no other network gets more than such a part. Within each part the same thresholds apply. Half of the spare places
 * are for all other clients, and the other half is for clients in these networks that want little. The last quarter of
 * the spare places is for networks without an in-flight query. Otherwise a weak flood, most of whose networks are never
 * refused, would take the last place as well.
 * While there are free places and no network was refused recently, every query is admitted without a lookup of its
 * client.
 */
export class Shares {
  readonly room: number;
  readonly #most: number;
  readonly #shares = new Map<string, Share>();
  readonly #networks = new Map<string, number>();
  /** Refusals per network; an address that is not in a network counts as its own. */
  readonly #refusals: Refusals;
  #waiting = 0;

  /** @param room maximum number of waiting queries for a single client, rounded up to a multiple of eight */
  constructor(room: number, clock: Clock) {
    const spare = Math.ceil(room / SPARE);
    this.#refusals = new Refusals(clock);
    this.room = SPARE * spare;
    this.#most = this.room + spare;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get clients(): number {
    return this.#shares.size;
  }

  /** True if the client has to be identified, because many queries are waiting or a network was refused recently. */
  get matters(): boolean {
    return this.#isFull || this.#refusals.networks > 0;
  }

  /** The last places, which are reserved for networks without a waiting query; 0 if nothing was refused. */
  get #reserve(): number {
    return this.#refusals.networks === 0 ? 0 : (this.#most - this.room) >> 2;
  }

  get #isFull(): boolean {
    return this.#waiting >= this.room;
  }

  /**
   * Decides whether the client may have another waiting query and, if not, whose limit was reached.
   * @param network empty if it needs no limit
   */
  judge(client: string, network: string): ShareVerdict {
    const own = this.#shares.get(client)?.waiting ?? 0;
    const near = network === '' ? own : (this.#networks.get(network) ?? 0);
    const verdict = this.#ofParts(network || client, own, near) ?? this.#ofAll(network, own, near);
    if (verdict !== 'admitted') this.#refusals.add(network || client);
    return verdict;
  }

  /** Returns the verdict for a network while others are being refused, or null if it has less than its part. */
  #ofParts(network: string, own: number, near: number): ShareVerdict | null {
    const refusals = this.#refusals;
    const { networks } = refusals;
    if (networks === 0) return null;
    // Networks without refusals are limited to the same part. Otherwise, the first ones to arrive could take any number
    // of places.
    const isKnown = refusals.has(network);
    const parts = isKnown ? networks : networks + 1;
    const part = this.room / parts;
    // If there are fewer places than networks, no network is guaranteed one. Those that query rarely take precedence
    // over those that query constantly.
    if (part < 1 && (!isKnown || refusals.isModest(network))) return null;
    const most = (this.room + (this.#most - this.room) / 2) / parts;
    if (near >= Math.max(1, Math.floor(most))) return 'network';
    if (near >= part && own >= SPARE * (most - near)) return 'client';
    return part < 1 && this.#isFull ? 'client' : null;
  }

  #ofAll(network: string, own: number, near: number): ShareVerdict {
    if (!this.#isFull) return 'admitted';
    const free = this.#most - this.#waiting;
    if (near > 0 && free <= this.#reserve) return network === '' ? 'client' : 'network';
    if (network !== '' && near > 0 && near >= 2 * SPARE * free) return 'network';
    if (own < SPARE * free) return 'admitted';
    return network !== '' && near === 0 && free === 0 ? 'admitted' : 'client';
  }

  /**
   * Records that one of the client's queries is waiting.
   * @returns the argument to pass to `leave` later
   */
  enter(client: string, network: string): Share {
    let share = this.#shares.get(client);
    if (share === undefined) this.#shares.set(client, (share = { client, network, waiting: 0 }));
    share.waiting++;
    this.#waiting++;
    if (network !== '') this.#networks.set(network, (this.#networks.get(network) ?? 0) + 1);
    return share;
  }

  leave(share: Share): void {
    const { client, network } = share;
    this.#waiting--;
    if (--share.waiting === 0) this.#shares.delete(client);
    if (network === '') return;
    const left = this.#networks.get(network)! - 1;
    if (left === 0) this.#networks.delete(network);
    else this.#networks.set(network, left);
  }
}
