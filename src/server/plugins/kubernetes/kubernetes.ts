/** `kubernetes`: how the plugin is set up in both planes. */
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import {
  clientNamespaces,
  metadataProviders,
  outsideServices,
  searchDomains,
} from '../../engine/contract/ports.ts';
import { foldName, parseName } from '../../wire/name.ts';
import { transferSources } from '../../zone/transfer-source.ts';
import { wildcardNames } from '../../zone/wildcard-names.ts';
import { KubernetesAnswerer } from './worker/answer.ts';
import type { ClusterZone } from './worker/lookup.ts';
import { metadataProvider } from './worker/metadata.ts';
import { primaryZone, syntax, type KubernetesOptions } from './contract/kubernetes-options.ts';
import { outsideOf } from './worker/outside.ts';
import { boundAddresses, ownAddresses } from './worker/own-addresses.ts';
import { clientNamespacesOf } from './worker/client-namespaces.ts';
import { searchDomainsOf } from './worker/search-domains.ts';
import { ClusterReplica } from './worker/replica.ts';
import { podNames } from './worker/pod-names.ts';
import { planSource, sourceKey } from './control/source-plan.ts';
import { placesOf } from './worker/client-places.ts';
import { Topology } from './worker/topology.ts';
import { clusterTransfers } from './worker/transfer-zone.ts';

/**
 * Cluster DNS. The control part (`control.ts`) watches objects (`source.ts`), reduces them to facts and sends these to
 * all workers (`publisher.ts`). A worker stores them in a form that is optimized for answering (`cluster.ts`), resolves
 * names (`lookup.ts`) and writes replies (`answer.ts`). Both parts survive reloads that do not change the source.
 */
export const kubernetes: Plugin = definePlugin({
  syntax,

  // Imported here because workers never need it.
  async control(options, context) {
    const { control } = await import('./control/control.ts');
    await control(options, context);
  },

  setup(options, context, next) {
    const plan = planSource(options, context);
    const { cluster } = context.replica(sourceKey(plan), () => new ClusterReplica());
    const zones = zonesOf(options);
    const namespaces = options.namespaces.length === 0 ? null : new Set(options.namespaces);
    const own = ownAddresses(context.servers);
    const shared = { ...options, cluster, zones, namespaces, own };
    const answerer = new KubernetesAnswerer({
      ...shared,
      primary: parseName(primaryZone(options.zones)!),
      topology:
        options.topology === null
          ? null
          : new Topology(placesOf(cluster, options.topologyZones), context.metrics),
      writer: context.writer,
      ask: context.ask,
    });
    const zoneOf = answerer.zoneOf.bind(answerer);
    const clients = options.pods === 'verified';
    context.offer(metadataProviders, metadataProvider(cluster, zoneOf, options));
    context.offer(searchDomains, searchDomainsOf(cluster, zoneOf, clients));
    context.offer(clientNamespaces, clientNamespacesOf(cluster, clients));
    // Other servers would reject a zone that has no name servers.
    const named = own.length > 0 ? own : boundAddresses(context.servers);
    context.offer(transferSources, clusterTransfers({ ...shared, own: named }));
    context.offer(outsideServices, outsideOf(shared));
    if (options.pods === 'insecure') context.offer(wildcardNames, podNames(zones));
    return (query) => answerer.answer(query, next);
  },
});

function zonesOf({ zones, multicluster }: KubernetesOptions): ClusterZone[] {
  return zones
    .map((text) => ({
      text,
      wire: foldName(parseName(text)),
      multicluster: multicluster?.includes(text) ?? false,
    }))
    .toSorted((a, b) => b.wire.length - a.wire.length);
}
