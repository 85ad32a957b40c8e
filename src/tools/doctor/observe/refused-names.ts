/** Clients that get REFUSED for a name, and clients that get an answer for it at the same time. */
import { RCODE } from '../../../server/wire/iana.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';

const NAMES_MAX = 2000;
const CLIENTS_MAX = 200;

/** Replies to one client about one name and type, from the first refusal of that name on. */
export interface RefusedName {
  readonly client: string;
  refused: number;
  answered: number;
}

export class RefusedNames {
  /** By `type name`, then by client. */
  readonly names: BoundedMap<string, BoundedMap<string, RefusedName>> = new BoundedMap(NAMES_MAX);

  add(exchange: SeenExchange): void {
    if (isLost(exchange)) return;
    const { name, type, rcode, client } = exchange;
    const isRefused = rcode === RCODE.REFUSED;
    if (!isRefused && this.names.size === 0) return;
    const key = `${type} ${name}`;
    const clients = isRefused
      ? this.names.at(key, () => new BoundedMap(CLIENTS_MAX))
      : (this.names.get(key) ?? null);
    const entry = clients?.at(client.address, (address) => ({
      ...{ client: address, refused: 0, answered: 0 },
    }));
    if (entry === undefined || entry === null) return;
    if (isRefused) entry.refused++;
    else if (rcode === RCODE.NOERROR || rcode === RCODE.NXDOMAIN) entry.answered++;
  }

  clear(): void {
    this.names.clear();
  }
}
