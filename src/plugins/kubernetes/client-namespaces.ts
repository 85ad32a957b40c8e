/** Whose pods ask, for plugins that treat clients by their namespace. */
import type { ClientNamespaces } from '../../server/contract/ports.ts';
import type { Cluster } from './cluster.ts';

/** Reads it off the table of pods' addresses. @param known pods are watched */
export function clientNamespacesOf(cluster: Cluster, known: boolean): ClientNamespaces {
  return {
    known,
    of({ peer, peerAt, family }) {
      const client = known ? cluster.clients.client(peer, peerAt, family === 4 ? 4 : 16) : 0;
      return client === 0 ? '' : cluster.namespaceName(client);
    },
  };
}
