/** How many queries of each client wait, and who may have one more. */

/** One part in so many of the room is kept for those who have little. */
const SPARE = 8;

/** One client that has queries waiting. */
export interface Share {
  readonly client: string;
  /** The one network that it is in; empty: nobody can come from there in another's name. */
  readonly network: string;
  waiting: number;
}

/**
 * A room for waiting queries that is shared by dynamic thresholds (Choudhury and Hahne 1998): a client may take another place as long as it has
 * less than eight times as many as are free, spare ones included. There is one spare place for every eight, so
 *
 * - whoever is alone may take the whole room: nothing is left idle;
 * - with k clients that want everything, each gets the same, (1 + 8) / (1 + 8 k) of the room, however much more one of them asks;
 * - places stay free for whoever comes next, since everybody's bound sinks as the room fills up.
 *
 * One of many addresses would get the better of that: with a query of each waiting there is nobody who has much, and no place left. So a network
 * has a bound, too: twice that of a client, so that one client alone leaves places to its neighbours, and a network of them, or of invented ones,
 * leaves places to others; and one more place is for networks that have nothing waiting.
 *
 * As long as fewer queries wait than the room has places, everybody is let in, and nobody needs to be looked up.
 */
export class Shares {
  readonly room: number;
  readonly #most: number;
  readonly #shares = new Map<string, Share>();
  /** Queries that wait, by network. */
  readonly #networks = new Map<string, number>();
  #waiting = 0;

  /** @param room queries that one client may have waiting when there is no other: rounded up to a multiple of eight */
  constructor(room: number) {
    const spare = Math.ceil(room / SPARE);
    this.room = SPARE * spare;
    this.#most = this.room + spare;
  }

  /** Queries that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Clients of which a query waits. */
  get clients(): number {
    return this.#shares.size;
  }

  /** Whether so many wait that it matters who asks. */
  get crowded(): boolean {
    return this.#waiting >= this.room;
  }

  /** Whether the client may have one more query waiting; if not, whose bound it has come to. @param network empty: it needs no bound */
  judge(client: string, network: string): 'admitted' | 'client' | 'network' {
    if (!this.crowded) return 'admitted';
    const free = this.#most - this.#waiting;
    const neighbours = network === '' ? 0 : (this.#networks.get(network) ?? 0);
    if (neighbours > 0 && neighbours >= 2 * SPARE * free) return 'network';
    const own = this.#shares.get(client)?.waiting ?? 0;
    if (own < SPARE * free) return 'admitted';
    return network !== '' && neighbours === 0 && free === 0 ? 'admitted' : 'client';
  }

  /** A query of the client waits from now on. @returns what is handed to `leave` when it does no longer */
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
