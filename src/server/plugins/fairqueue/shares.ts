/** Counts the in-flight queries of each client and decides which clients may have another one. */
import type { Clock } from '../../base/clock.ts';
import { Refusals } from './refusals.ts';

/** This part of the places is reserved for clients with few queries. */
const SPARE = 8;

/** True if one more query may wait; if not, whose bound it has come to. */
export type ShareVerdict = 'admitted' | 'client' | 'network';

export interface Share {
  readonly client: string;
  /** The network of the client; empty: clients cannot forge each other's addresses. */
  readonly network: string;
  waiting: number;
}

/**
 * Shares the places for in-flight queries by dynamic thresholds (Choudhury and Hahne 1998). A
 * client may take another place while it has fewer than eight times the number of free places. Free
 * places include spare ones, one for every eight. As a result:
 *
 * - A single client may take all places.
 * - Each of k clients that want everything gets the same part, (1 + 8) / (1 + 8 k) of the places.
 * - There are free places for further clients, because all thresholds fall as places are taken.
 *
 * A client with many addresses could evade this with one in-flight query per address. So networks have a
 * threshold as well, twice that of a client. One more place is reserved for networks without in-flight
 * queries.
 *
 * These thresholds depend only on the current in-flight queries. If many networks want everything, the most
 * active ones would get all places. So refusals are remembered for a while. The networks with
 * refusals share the places in equal parts, and no other network gets more than such a part. Within
 * each part the same thresholds apply. Half of the spare places are for all other clients. The
 * other half is for clients of these networks that want little. The last quarter of them is for
 * networks without an in-flight query: otherwise a weak flood, most of whose networks are never
 * refused, would take the last place as well.
 *
 * While there are free places and no network was refused recently, every query is admitted without
 * a lookup of its client.
 */
export class Shares {
  readonly room: number;
  readonly #most: number;
  readonly #shares = new Map<string, Share>();
  readonly #networks = new Map<string, number>();
  /** Refusals by network; an address without a network counts as a separate one. */
  readonly #refusals: Refusals;
  #waiting = 0;

  /**
   * @param room queries that one client may have waiting when there is no other: rounded up to a
   * multiple of eight
   */
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

  /** True if the asking client matters: many queries wait, or a network was refused recently. */
  get matters(): boolean {
    return this.#isFull || this.#refusals.networks > 0;
  }

  /** The last places, which are for networks of which no query waits; none while all are content. */
  get #reserve(): number {
    return this.#refusals.networks === 0 ? 0 : (this.#most - this.room) >> 2;
  }

  get #isFull(): boolean {
    return this.#waiting >= this.room;
  }

  /**
   * True if the client may have one more query waiting; if not, whose bound it has come to.
   * @param network empty: it needs no bound
   */
  judge(client: string, network: string): ShareVerdict {
    const own = this.#shares.get(client)?.waiting ?? 0;
    const near = network === '' ? own : (this.#networks.get(network) ?? 0);
    const verdict = this.#ofParts(network || client, own, near) ?? this.#ofAll(network, own, near);
    if (verdict !== 'admitted') this.#refusals.add(network || client);
    return verdict;
  }

  /**
   * The verdict for a network while some networks are refused; null if it has less than its part.
   */
  #ofParts(network: string, own: number, near: number): ShareVerdict | null {
    const refusals = this.#refusals;
    const { networks } = refusals;
    if (networks === 0) return null;
    // Networks that were not refused have no more than such a part either. Otherwise the first ones
    // to come could take any number of places at each moment.
    const isKnown = refusals.has(network);
    const parts = isKnown ? networks : networks + 1;
    const part = this.room / parts;
    // If there are fewer places than networks, no network is sure of one. Those that ask seldom
    // come before those that ask all the time.
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

  /** A query of the client waits from now on. @returns the argument for `leave` when it no longer does */
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
