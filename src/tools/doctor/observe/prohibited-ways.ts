/** Firewalls’ ICMP errors (administratively prohibited), by client and server of the rejected packets. */

const WAYS_MAX = 2000;
const SENDERS_MAX = 8;

export interface Prohibited {
  count: number;
  readonly senders: Set<string>;
}

export class ProhibitedWays {
  readonly #ways = new Map<string, Prohibited>();

  add(client: string, server: string, sender: string): void {
    const way = `${client} ${server}`;
    let entry = this.#ways.get(way);
    if (entry === undefined) {
      if (this.#ways.size >= WAYS_MAX) return;
      this.#ways.set(way, (entry = { count: 0, senders: new Set() }));
    }
    entry.count++;
    if (entry.senders.size < SENDERS_MAX) entry.senders.add(sender);
  }

  /** Errors by `client server`. */
  get entries(): readonly (readonly [way: string, Prohibited])[] {
    return [...this.#ways];
  }
}
