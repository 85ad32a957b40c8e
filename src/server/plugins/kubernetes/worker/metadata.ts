/** Query metadata that this plugin provides. */
import type { MetadataProvider } from '../../../engine/contract/ports.ts';
import type { Query } from '../../../transport/query.ts';
import type { KubernetesOptions } from '../contract/kubernetes-options.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterZone } from './lookup.ts';
import { labelText, ParsedName } from './name.ts';

/** Provides a query's subject and the pod that sent it to `metadata`, as `kubernetes/…` labels. */
export function metadataProvider(
  cluster: Cluster,
  zoneOf: (query: Query) => ClusterZone | null,
  { zonal, pods }: Pick<KubernetesOptions, 'zonal' | 'pods'>,
): MetadataProvider {
  const name = new ParsedName();
  return (query, notes) => {
    if (pods === 'verified') noteClient(cluster, query, notes);
    const zone = zoneOf(query);
    if (zone === null) return;
    const { folded } = query;
    name.read(folded, query.nameLength - zone.wire.length, {
      multicluster: zone.multicluster,
      zonal,
    });
    const { shape } = name;
    if (
      shape === 'other' ||
      shape === 'dns' ||
      shape === 'name-server' ||
      shape === 'dns-version'
    ) {
      notes.set('kubernetes/parse-error', 'invalid query name');
      return;
    }
    const bare = (label: number): string => labelText(folded, label).replace(/^_/, '');
    notes.set('kubernetes/port-name', bare(name.port));
    notes.set('kubernetes/protocol', bare(name.protocol));
    notes.set('kubernetes/endpoint', labelText(folded, name.endpoint));
    if (zone.multicluster) notes.set('kubernetes/cluster', labelText(folded, name.cluster));
    if (zonal) notes.set('kubernetes/zone', name.topologyText(folded, labelText));
    notes.set('kubernetes/service', labelText(folded, name.object));
    notes.set('kubernetes/namespace', labelText(folded, name.namespace));
    const kind = shape === 'apex' || shape === 'kind' ? '' : name.pod ? 'pod' : 'svc';
    notes.set('kubernetes/kind', kind);
  };
}

function noteClient(cluster: Cluster, query: Query, notes: Map<string, string>): void {
  const length = query.family === 4 ? 4 : 16;
  const namespace = cluster.clients.client(query.peer, query.peerAt, length);
  if (namespace === 0) return;
  notes.set('kubernetes/client-namespace', cluster.namespaceName(namespace));
  const named = cluster.clients.pod(query.peer, query.peerAt, length);
  if (named === null) return;
  notes.set('kubernetes/client-pod-name', named.pod);
  for (const [key, value] of Object.entries(named.labels ?? {}))
    notes.set(`kubernetes/client-label/${key}`, value);
}
