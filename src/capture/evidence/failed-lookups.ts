/** Lookups that ended without an address, and names that never had one. */
import { RCODE } from '../../wire/iana.ts';
import type { SearchDomains } from '../exchanges/search-walk.ts';
import { isLost, type SeenExchange, type SeenLookup } from '../exchanges/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';
import { isReverseLookup } from './reverse-lookup.ts';
import { isServiceConfig } from './service-config.ts';

/** What became of the lookups of one name. */
export interface NameLookups {
  failed: number;
  found: number;
}

/** Counts them. */
export class FailedLookups {
  /** Lookups that found nothing, because of a loss, an error or NXDOMAIN for each name. */
  count: number = 0;
  /** By the name as it was written, with its dot. */
  readonly names: BoundedMap<string, NameLookups>;
  readonly #domains: SearchDomains;

  /** @param most names that are counted one by one */
  constructor(domains: SearchDomains, most: number) {
    this.#domains = domains;
    this.names = new BoundedMap(most);
  }

  /** @param found whether it found an address */
  add({ exchanges, name }: SeenLookup, found: boolean): void {
    const last = exchanges.at(-1)!;
    if (last.ending === 'open' || isServiceConfig(last.name, last.type)) return;
    if (isReverseLookup(last.name, last.type)) return;
    const isEmpty = exchanges.some(
      ({ name: each, rcode }) => each === last.name && rcode === RCODE.NOERROR,
    );
    const isFailed = !found && !isEmpty;
    // The rest of the walk may have gone to another server.
    if (isFailed && this.#domains.domainOf(last.name) !== null) return;
    if (isFailed) this.count++;
    const written = name.endsWith('.') ? name : `${name}.`;
    const counts = this.names.at(written, () => ({ failed: 0, found: 0 }));
    if (counts !== null) counts[isFailed ? 'failed' : 'found']++;
  }
}

/** Whether no reply came at all: nobody gives up in less than a second. */
export function isUnanswered(exchanges: readonly SeenExchange[]): boolean {
  return exchanges.every(isLost);
}
