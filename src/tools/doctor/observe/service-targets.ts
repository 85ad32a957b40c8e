/** The hosts that SRV records name. */
import { RCODE, TYPE } from '../../../server/wire/iana.ts';
import { dataOf, readMessage } from '../../../server/wire/message.ts';
import { ReadError } from '../../../server/wire/reader.ts';
import { srv } from '../../../server/wire/record/table.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';

const OWNERS_MAX = 500;
const TARGETS_MAX = 200;

/** The targets in the answers for one SRV name. */
export interface ServiceTargets {
  readonly owner: string;
  /** Absolute, lower case. */
  readonly targets: Set<string>;
  readonly servers: Set<string>;
  readonly clients: Set<string>;
  count: number;
}

export class AllServiceTargets {
  readonly owners: BoundedMap<string, ServiceTargets> = new BoundedMap(OWNERS_MAX);

  add({ name, type, rcode, answers, reply, client, server }: SeenExchange): void {
    if (type !== TYPE.SRV || rcode !== RCODE.NOERROR || answers === 0 || reply === null) return;
    const entry = this.owners.at(name, newTargets);
    if (entry === null) return;
    entry.count++;
    if (entry.servers.size < TARGETS_MAX) entry.servers.add(server.address);
    if (entry.clients.size < TARGETS_MAX) entry.clients.add(client.address);
    try {
      for (const record of readMessage(reply).answer) {
        const target = dataOf(record, srv)?.target.toLowerCase();
        if (target !== undefined && entry.targets.size < TARGETS_MAX) entry.targets.add(target);
      }
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
    }
  }
}

const newTargets = (owner: string): ServiceTargets => ({
  ...{ owner, targets: new Set(), servers: new Set(), clients: new Set(), count: 0 },
});
