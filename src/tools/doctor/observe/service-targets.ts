/** The hosts that SRV records name. */
import { RCODE, TYPE } from '../../../server/wire/iana.ts';
import { dataOf } from '../../../server/wire/message.ts';
import { srv } from '../../../server/wire/record/table.ts';
import { answerRecords, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
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
}

export class AllServiceTargets {
  readonly owners: BoundedMap<string, ServiceTargets> = new BoundedMap(OWNERS_MAX);

  add(exchange: SeenExchange): void {
    const { name, type, rcode, answers, reply, client, server } = exchange;
    if (type !== TYPE.SRV || rcode !== RCODE.NOERROR || answers === 0 || reply === null) return;
    const entry = this.owners.at(name, newTargets);
    if (entry === null) return;
    if (entry.servers.size < TARGETS_MAX) entry.servers.add(server.address);
    if (entry.clients.size < TARGETS_MAX) entry.clients.add(client.address);
    for (const record of answerRecords(exchange)) {
      const target = dataOf(record, srv)?.target.toLowerCase();
      if (target !== undefined && entry.targets.size < TARGETS_MAX) entry.targets.add(target);
    }
  }
}

const newTargets = (owner: string): ServiceTargets => ({
  ...{ owner, targets: new Set(), servers: new Set(), clients: new Set() },
});
