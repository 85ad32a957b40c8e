/** DNS pods that all run on one node. */
import { nameOf, serversOf } from '../cluster/facts.ts';
import { type FindingKind, excluded, unknown, noPods } from './finding.ts';

export const oneNode: FindingKind = {
  code: 'ND5006',
  title: 'All DNS pods run on one node',
  name: 'DNS pods on one node',
  inCluster(facts) {
    if (facts.pods === null) return noPods;
    // A server that is not ready yet counts: it will serve on its node.
    const servers = serversOf(facts).filter(({ leaving }) => !leaving);
    const nodes = new Set(servers.map(({ node }) => node).filter((node) => node !== ''));
    if (nodes.size === 0) return unknown('the DNS pods’ nodes are not known');
    const possible = facts.nodes?.filter(({ ready }) => ready).length ?? 2;
    if (nodes.size > 1 || possible < 2)
      return excluded(
        nodes.size > 1 ? `DNS pods run on ${nodes.size} nodes` : 'the cluster has only one node',
      );
    const [node] = nodes;
    return {
      severity: 'warning',
      confidence: 0.95,
      seen: [`${servers.length} of ${servers.length} DNS pods run on ${node}.`],
      affected: servers.map(nameOf),
      why: 'If this node fails, or its connection tracking table is full, the whole cluster has no DNS. The pods also share the cloud’s per-node limit on DNS queries.',
      fix: [
        'Run at least two replicas, with topologySpreadConstraints on kubernetes.io/hostname.',
        'Then delete one of the pods, which is recreated on another node because of the constraint.',
      ],
      prove: `kubectl -n ${facts.namespace} get pods -o wide`,
      disproved: '',
    };
  },
};
