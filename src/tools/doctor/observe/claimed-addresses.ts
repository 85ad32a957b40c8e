/** Hardware addresses that claim IP addresses (ARP, neighbour discovery), which shows address conflicts. */
import { BoundedMap } from './bounded-map.ts';
import { SHARED_ADDRESS } from '../thresholds/transport.ts';

const ADDRESSES_MAX = 2000;
const HARDWARE_MAX = 8;

interface Claimed {
  readonly address: string;
  /** Claims by hardware address. */
  readonly hardware: Map<string, number>;
  last: string;
  /** The number of changes of the claiming hardware address. */
  changes: number;
}

/** An address that several hosts claim in turn. */
export interface Conflict {
  readonly address: string;
  /** Hardware addresses, most frequent first. */
  readonly hardware: readonly string[];
  readonly changes: number;
}

export class ClaimedAddresses {
  readonly #addresses: BoundedMap<string, Claimed> = new BoundedMap(ADDRESSES_MAX);
  /** The addresses that each hardware address claims. A router answers for many (proxy ARP). */
  readonly #owned: BoundedMap<string, Set<string>> = new BoundedMap(ADDRESSES_MAX);

  claim(address: string, hardware: Uint8Array): void {
    const text = Buffer.from(hardware)
      .toString('hex')
      .replaceAll(/(..)(?=.)/g, '$1:');
    const owned = this.#owned.at(text, () => new Set());
    if (owned !== null && owned.size <= SHARED_ADDRESS.owned) owned.add(address);
    const entry = this.#addresses.at(address, () => ({
      ...{ address, hardware: new Map(), last: text, changes: 0 },
    }));
    if (entry === null) return;
    const count = entry.hardware.get(text) ?? 0;
    if (count === 0 && entry.hardware.size >= HARDWARE_MAX) return;
    entry.hardware.set(text, count + 1);
    if (text !== entry.last) entry.changes++;
    entry.last = text;
  }

  get size(): number {
    return this.#addresses.size;
  }

  /** Addresses that hosts claim in turn. An address that moved once has changed only once. */
  get conflicts(): readonly Conflict[] {
    return this.#addresses.list.flatMap(({ address, hardware, changes }) => {
      const hosts = [...hardware]
        .filter(([text]) => (this.#owned.get(text)?.size ?? 0) <= SHARED_ADDRESS.owned)
        .toSorted(([, one], [, other]) => other - one)
        .map(([text]) => text);
      return hosts.length >= 2 && changes >= SHARED_ADDRESS.changes
        ? [{ address, hardware: hosts, changes }]
        : [];
    });
  }
}
