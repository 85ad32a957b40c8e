/** Times of the last answers with addresses, by client and name, and the TTLs of these answers. */
import { HEADER, isAddressType, RCODE } from '../../../server/wire/iana.ts';
import { skipName } from '../../../server/wire/skip.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { PairMap } from './pair-map.ts';

const LOOKUPS_MAX = 5000;

/** The last answer that a client got for a name. */
export interface LastLookup {
  repliedMs: number;
  /** Seconds. */
  ttl: number;
}

export class LastLookups {
  readonly #all: PairMap<string, string, LastLookup> = new PairMap(LOOKUPS_MAX);

  add({ client, name, type, rcode, answers, reply, repliedMs }: SeenExchange): void {
    if (!isAddressType(type) || rcode !== RCODE.NOERROR) return;
    if (reply === null || repliedMs === null) return;
    const ttl = answers > 0 ? firstTtl(reply) : null;
    const known = this.#all.at(client.address, name, newLookup);
    if (known === null) return;
    known.repliedMs = Math.max(known.repliedMs, repliedMs);
    // AAAA may have no record.
    if (ttl !== null) known.ttl = ttl;
  }

  of(client: string, name: string): LastLookup | undefined {
    return this.#all.get(client, name);
  }

  clear(): void {
    this.#all.clear();
  }
}

const newLookup = (): LastLookup => ({ repliedMs: -Infinity, ttl: 0 });

/** The TTL of the first answer, seconds. Null if the capture does not contain it. */
export function firstTtl(reply: Uint8Array): number | null {
  let at = skipName(reply, HEADER.SIZE, reply.length) + 4;
  at = skipName(reply, at, reply.length) + 4;
  if (at + 4 > reply.length) return null;
  return new DataView(reply.buffer, reply.byteOffset + at, 4).getUint32(0);
}
