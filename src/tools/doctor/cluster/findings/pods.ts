/** DNS pods that are not there, end, or stand all in one place. */
import { excluded, unknown } from '../../findings/finding.ts';
import { listed } from '../../texts.ts';
import { nameOf, serversOf, type ClusterFacts } from '../facts.ts';
import type { DnsPod } from '../pods.ts';
import type { MissingRight } from '../rights.ts';
import { clusterRule, finding, lintCommand, type ClusterRule } from './rule.ts';

const noPods = unknown('pods could not be listed');

/** DNS pods that do not run. */
export const podsNotReady: ClusterRule = clusterRule(
  {
    code: 'ND5002',
    title: 'DNS pods are not ready',
    name: 'DNS pods that do not run',
  },
  (facts, about) => {
    if (facts.pods === null) return noPods;
    const servers = serversOf(facts).filter(({ leaving }) => !leaving);
    if (servers.length === 0)
      return unknown(`no pod in ${facts.namespace} is known as a DNS server`);
    const away = servers.filter(({ ready }) => !ready);
    if (away.length === 0) return excluded(`all ${servers.length} DNS pods are ready`);
    const all = away.length === servers.length;
    const denied = deniedTo(facts.missingRights ?? []);
    return finding(about, {
      severity: all ? 'critical' : 'warning',
      confidence: all ? 0.97 : 0.9,
      seen: [
        `${away.length} of ${servers.length} DNS pods are not ready: ${listed(away.map(stateOf))}.`,
        ...denied.map(({ account, rights }) => `${account} must not ${listed(rights)}.`),
      ],
      affected: away.map(nameOf),
      why: all
        ? 'No DNS pod takes queries: every lookup in the cluster waits until its time is up.'
        : 'Those that are left carry the load of all, and the next one to go may be one too many. A pod that ends again and again has said why in its log.',
      fix: [
        ...denied.map(
          ({ account }) =>
            `Give ${account} these rights: its ClusterRole must allow list and watch, and a ClusterRoleBinding must name it (in kubeadm clusters: system:coredns). See kubectl auth can-i list services --all-namespaces --as ${account}`,
        ),
        `kubectl -n ${facts.namespace} describe pod ${away[0]!.name}, and its log of the time before: kubectl -n ${facts.namespace} logs --previous ${away[0]!.name}`,
        `A Corefile that cannot be loaded: ${lintCommand(facts)} names the line.`,
      ],
      prove: `kubectl -n ${facts.namespace} get pods -o wide`,
      disproved: 'the pods are ready a minute later: then it was a rollout',
    });
  },
);

/** DNS pods that were killed for their memory, or are near to it. */
export const killedForMemory: ClusterRule = clusterRule(
  {
    code: 'ND7002',
    title: 'DNS pods are killed for the memory that they take',
    name: 'DNS pods without memory',
  },
  (facts, about) => {
    if (facts.pods === null) return noPods;
    const killed = facts.pods.filter(({ ended }) => ended === 'OOMKilled');
    const near = facts.measurement.measured.flatMap(({ pod, after }) => {
      const bytes = after.sum('process_resident_memory_bytes');
      const limit = pod.memoryLimit ?? 0;
      return limit > 0 && bytes > 0.9 * limit && !killed.includes(pod)
        ? [{ pod, bytes, limit }]
        : [];
    });
    if (killed.length + near.length === 0)
      return facts.pods.length === 0
        ? unknown('no DNS pod is known')
        : excluded('no DNS pod was killed for its memory, and none is near its limit');
    const [first] = killed;
    return finding(about, {
      severity: killed.length > 0 ? 'critical' : 'warning',
      confidence: killed.length > 0 ? 0.92 : 0.7,
      seen: [
        ...killed
          .slice(0, 3)
          .map(
            ({ name, restarts, endedAt }) =>
              `${name} was killed (OOMKilled) at ${endedAt || 'an unknown time'}; ${restarts} restarts.`,
          ),
        ...near
          .slice(0, 3)
          .map(({ pod, bytes, limit }) => `${pod.name} takes ${mebi(bytes)} of ${mebi(limit)}.`),
      ],
      affected: [...killed, ...near.map(({ pod }) => pod)].map(nameOf),
      why: 'What waits for a slow upstream takes memory, and so does a list of all objects after the API server was away. All replicas get the same load, so they tend to go together.',
      fix: [
        'forward { max_concurrent 1000 } bounds what may wait.',
        'A higher memory limit: twice what it takes on a busy day.',
        'A cache on each node, so that bursts do not reach these pods.',
      ],
      prove: `kubectl -n ${facts.namespace} get pod ${(first ?? near[0]!.pod).name} -o jsonpath='{.status.containerStatuses[*].lastState}'`,
      disproved: 'the last one was long ago, and memory stays flat since',
    });
  },
);

/** All DNS pods on one node. */
export const oneNode: ClusterRule = clusterRule(
  {
    code: 'ND5006',
    title: 'All DNS pods run on one node',
    name: 'DNS pods on one node',
  },
  (facts, about) => {
    if (facts.pods === null) return noPods;
    // A server that is not ready yet counts: it will serve on its node.
    const servers = serversOf(facts).filter(({ leaving }) => !leaving);
    const nodes = new Set(servers.map(({ node }) => node).filter((node) => node !== ''));
    if (nodes.size === 0) return unknown('it is not known where DNS pods run');
    const possible = facts.nodes?.filter(({ ready }) => ready).length ?? 2;
    if (nodes.size > 1 || possible < 2)
      return excluded(nodes.size > 1 ? `DNS pods run on ${nodes.size} nodes` : 'there is one node');
    const [node] = nodes;
    return finding(about, {
      severity: 'warning',
      confidence: 0.95,
      seen: [`${servers.length} of ${servers.length} DNS pods run on ${node}.`],
      affected: servers.map(nameOf),
      why: 'When this node goes, or its connection tracking is full, the whole cluster has no DNS. They also share what a cloud lets one node ask of its resolver.',
      fix: [
        'Two replicas or more, with topologySpreadConstraints over kubernetes.io/hostname.',
        'Delete one of the pods: with the constraint it comes back elsewhere.',
      ],
      prove: `kubectl -n ${facts.namespace} get pods -o wide`,
      disproved: '',
    });
  },
);

/** Servers that ran into errors of their own. */
export const panics: ClusterRule = clusterRule(
  {
    code: 'ND5004',
    title: 'A DNS server runs into errors of its own (panics)',
    name: 'errors of the server itself',
  },
  ({ measurement: { measured } }, about) => {
    if (measured.length === 0) return unknown('no DNS pod’s metrics could be read');
    const counts = measured
      .map(({ pod, after }) => ({ pod, count: after.sum('coredns_panics_total') }))
      .filter(({ count }) => count > 0);
    if (counts.length === 0) return excluded('no panic is counted');
    return finding(about, {
      severity: 'warning',
      confidence: 0.9,
      seen: counts.map(({ pod, count }) => `${pod.name} counts ${count} panics since its start.`),
      affected: counts.map(({ pod }) => nameOf(pod)),
      why: 'A mistake in the server or in one of its plugins: the query that met it got SERVFAIL.',
      fix: ['See the log for the stack, and whether a newer release mends it.'],
      prove: 'coredns_panics_total, twice, and the log between',
      disproved: '',
    });
  },
);

/** Caches of nodes that are not ready: their node may have no DNS at all. */
export const nodeCaches: ClusterRule = clusterRule(
  {
    code: 'ND5005',
    title: 'The DNS cache of some nodes is not ready',
    name: 'caches of nodes that are away',
  },
  (facts, about) => {
    if (facts.pods === null) return noPods;
    const caches = facts.pods.filter(({ role, leaving }) => role === 'node-cache' && !leaving);
    if (caches.length === 0) return excluded('no node has a DNS cache');
    const away = caches.filter(({ ready }) => !ready);
    const with_ = new Set(caches.map(({ node }) => node));
    const bare = (facts.nodes ?? []).filter(({ name, ready }) => ready && !with_.has(name));
    if (away.length + bare.length === 0)
      return excluded(`the caches of all ${caches.length} nodes are ready`);
    return finding(about, {
      severity: away.length > 0 ? 'critical' : 'warning',
      confidence: away.length > 0 ? 0.85 : 0.7,
      seen: [
        ...(away.length > 0 ? [`Not ready: ${listed(away.map(stateOf))}.`] : []),
        ...(bare.length > 0 ? [`Nodes without one: ${listed(bare.map(({ name }) => name))}.`] : []),
      ],
      affected: [
        ...away.map(({ node }) => `node ${node}`),
        ...bare.map(({ name }) => `node ${name}`),
      ],
      why: 'Pods of such a node ask its cache by its link-local address, or the rules of the cache keep queries to the service from being translated. If the cache is away, nobody answers them.',
      fix: [
        `kubectl -n ${facts.namespace} describe pod ${away[0]?.name ?? 'node-local-dns-…'}`,
        'If it has to work at once: remove its interface and its NOTRACK rules on the node, and queries go to the service again. ndots node-cache does so by itself.',
      ],
      prove:
        'from a pod on that node: ndots query kubernetes.default @169.254.20.10, and @ the address of the service',
      disproved: 'both answer',
    });
  },
);

/** As many replicas as there may be, and more wanted. */
export const autoscalerAtMost: ClusterRule = clusterRule(
  {
    code: 'ND7003',
    title: 'The autoscaler of the DNS pods is at its limit',
    name: 'an autoscaler at its limit',
  },
  ({ autoscalers }: ClusterFacts, about) => {
    if (autoscalers === null) return unknown('autoscalers could not be listed');
    const full = autoscalers.filter(
      ({ current, desired, most }) => most > 0 && desired >= most && current >= most,
    );
    if (full.length === 0) return excluded('no autoscaler of DNS pods is at its limit');
    return finding(about, {
      severity: 'warning',
      confidence: 0.8,
      seen: full.map(({ name, most }) => `${name} has ${most} replicas, and may have no more.`),
      affected: full.map(({ name }) => name),
      why: 'Their load asks for as many pods as are allowed; what comes on top makes replies late.',
      fix: ['Raise maxReplicas, or take load away: a cache on each node, fewer search domains.'],
      prove: 'ndots size --metrics … says how many it takes',
      disproved: 'the load is usual for this hour, and replies are fast',
    });
  },
);

/** By account: `list services`. */
function deniedTo(
  missing: readonly MissingRight[],
): readonly { readonly account: string; readonly rights: readonly string[] }[] {
  return [...Map.groupBy(missing, ({ account }) => account)].map(([account, rights]) => ({
    account,
    rights: rights.map(({ verb, resource }) => `${verb} ${resource}`),
  }));
}

function stateOf({ name, node, waiting, restarts }: DnsPod): string {
  const why = [waiting, restarts > 0 ? `${restarts} restarts` : ''].filter((word) => word !== '');
  return `${name}${node === '' ? '' : ` on ${node}`}${why.length > 0 ? ` (${why.join(', ')})` : ''}`;
}

function mebi(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`;
}
