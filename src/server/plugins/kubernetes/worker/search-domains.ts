/** Finds a client's search path in the queried name, for `autopath`. */
import type { ClientSearchPaths } from '../../../engine/contract/ports.ts';
import type { Query } from '../../../transport/query.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterZone } from './lookup.ts';
import { labelBytes, ParsedName, UNDERSCORE } from './name.ts';
import { PLUGIN } from './reply-builder.ts';

/** Finds the first search domain in a name, for `autopath`: `api.example.com` + `default.svc.cluster.local`. */
export function searchDomainsOf(
  cluster: Cluster,
  zoneOf: (query: Query) => ClusterZone | null,
  clients: boolean,
): ClientSearchPaths {
  const name = new ParsedName();
  const plain = { multicluster: false, zonal: false };

  /** Parses `BASE.NS.svc.ZONE`, where the base has at least one label. Returns the offset of NS, or -1. */
  const domainOf = (query: Query): number => {
    const zone = zoneOf(query);
    if (zone === null || zone.multicluster) return -1;
    name.read(query.folded, query.nameLength - zone.wire.length, plain);
    return name.count < 3 || name.pod || name.namespace < 0 ? -1 : name.namespace;
  };

  return {
    plugin: PLUGIN,
    knowsClients: clients,
    byClient(query) {
      const at = domainOf(query);
      if (at < 0) return -1;
      const client = cluster.clients.client(query.peer, query.peerAt, query.family === 4 ? 4 : 16);
      if (client === 0) return -1;
      return labelBytes(query.folded, at) === cluster.namespaceName(client) ? at : -1;
    },
    byName(query) {
      const at = domainOf(query);
      if (at < 0 || !cluster.synced) return -1;
      const { folded } = query;
      const namespace = cluster.namespace(folded, at);
      if (namespace === null) return -1;
      // A service, or an endpoint or port of an existing service, is answered as written, whether or not it is found.
      const service = cluster.service(folded, name.labels[name.count - 3]!, namespace, false);
      if (service === null) return at;
      return name.count <= 5 || isZonal(folded, name) ? -1 : at;
    },
  };
}

/** True for `….pin._zone.SVC.NS.svc`, which is never a search path, even if such names are disabled. */
function isZonal(folded: Uint8Array, { labels, count }: ParsedName): boolean {
  const label = labels[count - 4]!;
  return folded[label + 1] === UNDERSCORE && labelBytes(folded, label) === '_zone';
}
