/** Finds the namespaces of clients, for plugins that treat clients by namespace. */
import type { ClientNamespaces } from '../../../engine/contract/ports.ts';
import type { Cluster } from './cluster.ts';

/**
 * Looks up namespaces in the table of pod addresses.
 * @param known true if pods are watched
 */
export function clientNamespacesOf(cluster: Cluster, known: boolean): ClientNamespaces {
  return {
    known,
    of({ peer, peerAt, family }) {
      const client = known ? cluster.clients.ownClient(peer, peerAt, family === 4 ? 4 : 16) : 0;
      return client === 0 ? '' : cluster.namespaceName(client);
    },
    pod(address) {
      const { clients } = cluster;
      const client = known ? clients.client(address, 0, address.length) : 0;
      if (client === 0) return { namespace: '', name: '' };
      const name = clients.pod(address, 0, address.length)?.pod ?? '';
      return { namespace: cluster.namespaceName(client), name };
    },
  };
}
