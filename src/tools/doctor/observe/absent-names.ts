/**
 * Names that do not exist and that programs query as written, so that no search path continues from
 * them.
 */
import { RCODE, TYPE } from '../../../server/wire/iana.ts';
import { CopiedBytes } from '../../capture/pair/copied-bytes.ts';
import type { SeenLookup } from '../../capture/pair/seen-exchange.ts';
import { isBlockListName } from './block-lists.ts';
import { BoundedMap } from './bounded-map.ts';
import { parentOf } from './domain-of-name.ts';
import { isNoData } from './failed-lookups.ts';
import { isServiceConfig } from './service-config.ts';

const CLIENTS_MAX = 2000;
const PARENTS_MAX = 5000;
const SAMPLES_MAX = 200;
const NAMES_MAX = 16_000;

/** Queries for names that do not exist, by client and by parent domain. */
export class AbsentNames {
  /**
   * Queries and lookups that got NXDOMAIN for the intended name, without the extra lookups of gRPC.
   */
  queries: number = 0;
  lookups: number = 0;
  /** All queries in these lookups, including the search path’s. */
  walked: number = 0;
  readonly clients: BoundedMap<string, { readonly address: string; queries: number }> =
    new BoundedMap(CLIENTS_MAX);
  /** As they were written. */
  readonly names: Set<string> = new Set();
  readonly samples: SeenLookup[] = [];
  readonly #kept = new CopiedBytes();
  readonly #parents: BoundedMap<string, { readonly parent: string; queries: number }> =
    new BoundedMap(PARENTS_MAX);

  add(lookup: SeenLookup): void {
    const { name: meant } = lookup;
    // NXDOMAIN from a block list is an answer, which means that the address is not listed.
    if (isBlockListName(meant)) return;
    // The program does not mean a name that the search path created, not even the last one.
    const last = lookup.candidates.find((name) => name === meant || name === `${meant}.`);
    let queries = 0;
    for (const exchange of lookup.exchanges) {
      const { name, type, rcode } = exchange;
      // A name that exists without an address in one step of the search is not absent.
      if (isNoData(exchange)) return;
      if (name !== last) continue;
      // A name that exists for one type exists, so the server is at fault and not the program.
      if (rcode === RCODE.NOERROR) return;
      // Reverse names are not made up, since most addresses have none.
      if (rcode === RCODE.NXDOMAIN && type !== TYPE.PTR && !isServiceConfig(name, type)) queries++;
    }
    if (last === undefined || queries === 0) return;
    this.queries += queries;
    this.lookups++;
    if (this.names.size < NAMES_MAX) this.names.add(last);
    this.walked += lookup.exchanges.length;
    const { client: address } = lookup;
    const client = this.clients.at(address, () => ({ address, queries: 0 }));
    if (client !== null) client.queries += queries;
    const parent = parentOf(last);
    const below = this.#parents.at(parent, () => ({ parent, queries: 0 }));
    if (below !== null) below.queries += queries;
    if (this.samples.length >= SAMPLES_MAX) return;
    for (const exchange of lookup.exchanges) this.#kept.keep(exchange);
    this.samples.push(lookup);
  }

  /**
   * The longest domain that contains this share of the names, 0 to 1; `.` if they have none in
   * common.
   */
  domain(share: number): string {
    const counts = new Map<string, number>();
    for (const { parent, queries } of this.#parents.list)
      for (let at = 0; at < parent.length; at = parent.indexOf('.', at) + 1) {
        const domain = parent.slice(at);
        counts.set(domain, (counts.get(domain) ?? 0) + queries);
      }
    let longest = '';
    for (const [domain, queries] of counts)
      if (queries >= share * this.queries && domain.length > longest.length) longest = domain;
    return longest === '' ? '.' : longest;
  }
}
