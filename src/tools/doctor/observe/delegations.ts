/**
 * Referrals and refusals in response to queries without RD, which resolvers send to a zone's
 * delegated servers.
 */
import { FLAG, HEADER, isAddressType, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { readMessage } from '../../../server/wire/message.ts';
import { printData } from '../../../server/wire/print.ts';
import { readable } from '../../../server/wire/reader.ts';
import { isWithin } from '../../../server/wire/within-zone.ts';
import { CopiedBytes } from '../../capture/pair/copied-bytes.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';

const ZONES_MAX = 500;
const SERVERS_MAX = 200;
const NAMES_MAX = 500;
const SAMPLES_MAX = 200;

/** A zone, and the server addresses in its referral. */
export interface Delegation {
  readonly zone: string;
  readonly servers: Set<string>;
}

export interface RefusedReferral {
  readonly server: string;
  count: number;
  readonly names: Set<string>;
  readonly samples: SeenExchange[];
}

/** True for a query without RD, as sent by a resolver that follows delegations. */
export function isIterative({ query }: Pick<SeenExchange, 'query'>): boolean {
  return query.length >= HEADER.SIZE && ((query[2]! << 8) & FLAG.RD) === 0;
}

export class Delegations {
  readonly zones: BoundedMap<string, Delegation> = new BoundedMap(ZONES_MAX);
  readonly refusals: BoundedMap<string, RefusedReferral> = new BoundedMap(SERVERS_MAX);
  readonly #kept = new CopiedBytes();

  add(exchange: SeenExchange): void {
    const { rcode, answers, reply, name, server } = exchange;
    const isReferral = rcode === RCODE.NOERROR && answers === 0;
    if (!isReferral && rcode !== RCODE.REFUSED) return;
    if (reply === null || !isIterative(exchange)) return;
    if (isReferral) return this.#referral(reply);
    const { address } = server;
    const entry = this.refusals.at(address, () => ({
      ...{ server: address, count: 0, names: new Set<string>(), samples: [] },
    }));
    if (entry === null) return;
    entry.count++;
    if (entry.names.size < NAMES_MAX) entry.names.add(name);
    if (entry.samples.length >= SAMPLES_MAX) return;
    this.#kept.keep(exchange);
    entry.samples.push(exchange);
  }

  /** A name’s closest delegation in the capture; null if there is none. */
  of(name: string): Delegation | null {
    return this.zones.list
      .filter(({ zone }) => isWithin(name, zone))
      .reduce<Delegation | null>(
        (best, each) => (best === null || each.zone.length > best.zone.length ? each : best),
        null,
      );
  }

  #referral(reply: Uint8Array): void {
    const message = readable(() => readMessage(reply));
    const zone = message?.authority.find(({ type }) => type === TYPE.NS)?.name.toLowerCase();
    if (zone === undefined || zone === '.') return;
    const delegation = this.zones.at(zone, () => ({ zone, servers: new Set<string>() }));
    for (const { type, data } of message!.additional)
      if (isAddressType(type)) delegation?.servers.add(printData(type, data));
  }
}
