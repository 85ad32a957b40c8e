/** Lookups that ended without an address, and names that never had one. */
import { absoluteName } from './absolute-name.ts';
import { FLAG, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { CopiedBytes } from '../../capture/pair/copied-bytes.ts';
import type { SearchDomains } from '../../capture/pair/search-walk.ts';
import {
  isEmpty,
  isLost,
  type SeenExchange,
  type SeenLookup,
} from '../../capture/pair/seen-exchange.ts';
import { isBlockListName } from './block-lists.ts';
import { BoundedMap } from './bounded-map.ts';
import { isReverseLookup } from './reverse-lookup.ts';
import { isServiceConfig } from './service-config.ts';

export interface NameLookups {
  failed: number;
  found: number;
}

/** Samples of one name without addresses, and clients of it. */
const SAMPLES_MAX = 20;
const CLIENTS_MAX = 200;

/** A name that exists and has no IPv4 address (NODATA), in lookups that found no address at all. */
export interface EmptyName {
  readonly name: string;
  /** As it was written in its first lookup, with a dot. */
  readonly written: string;
  lookups: number;
  /** Lookups by client. */
  readonly clients: Map<string, number>;
  readonly samples: SeenExchange[];
}

export class FailedLookups {
  /** Lookups that found nothing, because of a loss, an error or NXDOMAIN for each name. */
  count: number = 0;
  /** By the name as it was written, with its dot. */
  readonly names: BoundedMap<string, NameLookups>;
  readonly empty: BoundedMap<string, EmptyName>;
  readonly #domains: SearchDomains;
  readonly #kept = new CopiedBytes();

  /** @param most names that are counted one by one */
  constructor(domains: SearchDomains, most: number) {
    this.#domains = domains;
    this.names = new BoundedMap(most);
    this.empty = new BoundedMap(most);
  }

  add(lookup: SeenLookup, found: boolean): void {
    const { exchanges, name } = lookup;
    const last = exchanges.at(-1)!;
    if (!found) this.#empty(lookup);
    if (last.ending === 'open' || isServiceConfig(last.name, last.type)) return;
    if (isReverseLookup(last.name, last.type) || isBlockListName(absoluteName(name))) return;
    const isEmpty = exchanges.some(
      ({ name: each, rcode }) => each === last.name && rcode === RCODE.NOERROR,
    );
    const isFailed = !found && !isEmpty;
    // The rest of the search may have gone to another server.
    if (isFailed && this.#domains.domainOf(last.name) !== null) return;
    if (isFailed) this.count++;
    const counts = this.names.at(absoluteName(name), () => ({ failed: 0, found: 0 }));
    if (counts !== null) counts[isFailed ? 'failed' : 'found']++;
  }

  #empty({ exchanges, client, name }: SeenLookup): void {
    // A lost half may have been the address.
    if (exchanges.some(isLost)) return;
    const missing = exchanges.find(isNoData);
    if (missing === undefined) return;
    const entry = this.empty.at(missing.name, () => newEmptyName(missing.name, absoluteName(name)));
    if (entry === null) return;
    entry.lookups++;
    const { clients, samples } = entry;
    if (clients.size < CLIENTS_MAX || clients.has(client))
      clients.set(client, (clients.get(client) ?? 0) + 1);
    if (samples.length >= SAMPLES_MAX) return;
    this.#kept.keep(missing);
    samples.push(missing);
  }
}

const newEmptyName = (name: string, written: string): EmptyName => ({
  ...{ name, written, lookups: 0, clients: new Map(), samples: [] },
});

/** True for a complete reply which shows that the name exists but has no IPv4 address. */
export function isNoData(exchange: SeenExchange): boolean {
  const { type, rcode, replyFlags } = exchange;
  return (
    type === TYPE.A && rcode === RCODE.NOERROR && (replyFlags & FLAG.TC) === 0 && isEmpty(exchange)
  );
}

/** True if no reply came at all: no resolver gives up in less than a second. */
export function isUnanswered(exchanges: readonly SeenExchange[]): boolean {
  return exchanges.every(isLost);
}
