/** Servers that get queries for only one zone: its authoritative servers, or upstreams that it is forwarded to. */
import { commonZone } from '../../../server/wire/within-zone.ts';
import type { Observations } from './observations.ts';
import { isForwarder } from './roles.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/** The zone of all names that each server is queried for, if its clients are resolvers or query others for other names. */
export function zonesOfServers(observed: Observations): ReadonlyMap<string, string> {
  const zones = new Map<string, string>();
  for (const { name, servers } of observed.names.list)
    for (const [address] of servers) {
      // Forwarders’ health checks query the root.
      if (name === '.') continue;
      const known = zones.get(address);
      zones.set(address, known === undefined ? name : commonZone(known, name));
    }
  const found = new Map<string, string>();
  for (const [address, zone] of zones) {
    const view = observed.servers.get(address);
    const isZone = zone.split('.').length > 2 && !observed.domains.isOfCluster(zone);
    if (view === undefined || !isZone || view.outcomes.asked < MIN_CASES) continue;
    const asksOthers = [...view.clients].some(
      (client) =>
        isForwarder(observed, client) ||
        observed.askedAgain.isProbing(client) ||
        [...(observed.clients.get(client)?.servers.keys() ?? [])].some(
          (other) => other !== address && zones.get(other) !== zone,
        ),
    );
    if (asksOthers) found.set(address, zone);
  }
  return found;
}
