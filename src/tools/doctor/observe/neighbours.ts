/**
 * Requests on the local network, by ARP or neighbour discovery (RFC 826, RFC 4861), and whether
 * they were answered.
 */
import { BoundedMap } from './bounded-map.ts';

const ADDRESSES_MAX = 2000;

export interface Neighbour {
  readonly address: string;
  asked: number;
  answered: number;
  /** Requests since the last reply. */
  unanswered: number;
  /** The most consecutive requests without a reply. */
  longest: number;
}

export class Neighbours {
  readonly #addresses: BoundedMap<string, Neighbour> = new BoundedMap(ADDRESSES_MAX);

  asked(address: string): void {
    const entry = this.#at(address);
    if (entry === null) return;
    entry.asked++;
    entry.unanswered++;
    entry.longest = Math.max(entry.longest, entry.unanswered);
  }

  answered(address: string): void {
    const entry = this.#at(address);
    if (entry === null) return;
    entry.answered++;
    entry.unanswered = 0;
  }

  get list(): readonly Neighbour[] {
    return this.#addresses.list;
  }

  get size(): number {
    return this.#addresses.size;
  }

  #at(address: string): Neighbour | null {
    return this.#addresses.at(address, () => ({
      ...{ address, asked: 0, answered: 0, unanswered: 0, longest: 0 },
    }));
  }
}
