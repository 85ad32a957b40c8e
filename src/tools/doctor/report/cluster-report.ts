/** The head, verdict, gaps and JSON of a running cluster’s report. */
import { count } from '../../../server/base/counted.ts';
import { serversOf, type ClusterFacts } from '../cluster/facts.ts';
import { trafficOf } from '../cluster/traffic.ts';
import type { Diagnosis } from '../diagnosis.ts';
import { severityCounts } from './capture-head.ts';

/** Two lines about the cluster. */
export function clusterHead(facts: ClusterFacts, { findings }: Diagnosis): string {
  const servers = serversOf(facts);
  const images = new Set(servers.map(({ image }) => image.replace(/^.*\//, '').replace(/@.*/, '')));
  const nodes = new Set(servers.map(({ node }) => node).filter((node) => node !== ''));
  const vips = (facts.service?.vips ?? []).map(({ host }) => host).join(', ');
  const traffic = trafficOf(facts);
  const percent = (share: number): string => `${Math.round(100 * share)} %`;
  return [
    `${facts.cluster}: ${count(servers.length, 'DNS pod', 'DNS pods')}${images.size > 0 ? ` (${[...images].join(', ')})` : ''} on ${count(nodes.size, 'node', 'nodes')}${vips === '' ? '' : ` behind ${vips}`}; ${count(facts.clientPods, 'pod', 'pods')} in total`,
    traffic === null
      ? 'no metrics could be read'
      : `${traffic.perSecond.toFixed(0)} queries per second, ${percent(traffic.cached)} from the cache, ${percent(traffic.servfail)} SERVFAIL`,
    `${facts.answers === null ? 'not queried, because this machine is not in the pod network' : `queried from here: ${count(facts.answers.replicas.length, 'DNS pod', 'DNS pods')} and the Service`}; ${severityCounts(findings)}`,
  ].join('\n');
}

/** The verdict if nothing critical was found. */
export function clusterVerdict(
  { answers, measurement }: ClusterFacts,
  { findings }: Diagnosis,
): string {
  if (answers === null)
    return measurement.measured.length === 0
      ? 'Nothing critical was found, but there is little evidence, because no server could be queried and no metrics could be read.'
      : 'Nothing critical was found in objects and counters, but no server could be queried from here. To see more, run it in a pod. ndots doctor cluster --rbac prints the permissions that the pod’s service account needs.';
  if (findings.length > 0)
    return 'Nothing critical was found. The answers from every DNS pod and from the Service match the API server.';
  return 'Not DNS, as far as this shows: the answers from every DNS pod and from the Service match the API server. If programs still fail or hang, capture on their node with ndots doctor -i any.';
}

/** The parts of a cluster that could not be read, each once, with the missing verdicts. */
export function lackingOf({ lacking, measurement }: ClusterFacts): readonly string[] {
  const pods = measurement.without.filter(({ pod }) => pod.role === 'server');
  return [
    ...lacking.map(({ why, so }) => `${so}: ${why}`),
    ...pods.slice(0, 3).map(({ pod, why }) => `metrics of ${pod.name}: ${why}`),
    ...(pods.length > 3 ? [`and ${pods.length - 3} more pods without metrics`] : []),
  ];
}

/** The JSON document’s part about the cluster. */
export function clusterDocument(facts: ClusterFacts): object {
  const { cluster, namespace, service, clientPods, measurement, answers, lacking, proxyMode } =
    facts;
  return {
    name: cluster,
    namespace,
    service: service === null ? null : `${service.namespace}/${service.name}`,
    pods: clientPods,
    dnsPods: serversOf(facts).map(({ name, node, ready, image, restarts }) => ({
      name,
      node,
      ready,
      image,
      restarts,
    })),
    proxyMode,
    traffic: trafficOf(facts),
    asked: answers !== null,
    withoutMetrics: measurement.without.map(({ pod, why }) => ({ pod: pod.name, why })),
    lacking,
  };
}
