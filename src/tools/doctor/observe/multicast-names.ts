/** Names that clients look up by Multicast DNS (RFC 6762) and LLMNR (RFC 4795). */
import { isAddressType } from '../../../server/wire/iana.ts';
import type { PathEvent } from '../../capture/read/packets/dissect.ts';
import { SAME_MOMENT_MS } from '../thresholds/evidence.ts';
import { BoundedMap } from './bounded-map.ts';

/** The mDNS port. The other port is LLMNR’s. */
export const MDNS_PORT = 5353;

const ASKED_MAX = 1000;
const ANSWERED_MAX = 1000;

/** One client’s address queries for one name. */
export interface MulticastName {
  readonly client: string;
  readonly name: string;
  /** 5353 or 5355. */
  readonly port: number;
  /** A and AAAA sent together count once. */
  tries: number;
  lastMs: number;
}

/** Counts the names in queries and records those in replies. */
export class MulticastNames {
  readonly #asked = new BoundedMap<string, MulticastName>(ASKED_MAX);
  readonly #answered = new BoundedMap<string, true>(ANSWERED_MAX);

  add(client: string, { name, code: type, isReply, timeMs, targetPort: port }: PathEvent): void {
    if (!isAddressType(type)) return;
    if (isReply) {
      this.#answered.at(name, () => true);
      return;
    }
    const made = { client, name, port, tries: 0, lastMs: -Infinity };
    const entry = this.#asked.at(`${client} ${port} ${name}`, () => made);
    if (entry === null) return;
    // Each interface may capture its own copy.
    if (timeMs - entry.lastMs > SAME_MOMENT_MS) entry.tries++;
    entry.lastMs = timeMs;
  }

  clear(): void {
    this.#asked.clear();
    this.#answered.clear();
  }

  get unanswered(): readonly MulticastName[] {
    return this.#asked.list.filter(({ name }) => this.#answered.get(name) === undefined);
  }
}
