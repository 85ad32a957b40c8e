/** Node caches that are not ready, so that their nodes may have no DNS at all. */
import { stateOf } from '../cluster/pods.ts';
import { listed } from '../texts.ts';
import { type FindingKind, excluded, noPods } from './finding.ts';

export const nodeCaches: FindingKind = {
  code: 'ND5005',
  title: 'The DNS cache on some nodes is not ready',
  name: 'node caches that are down',
  inCluster(facts) {
    if (facts.pods === null) return noPods;
    const caches = facts.pods.filter(({ role, leaving }) => role === 'node-cache' && !leaving);
    if (caches.length === 0) return excluded('no node has a DNS cache');
    const away = caches.filter(({ ready }) => !ready);
    const with_ = new Set(caches.map(({ node }) => node));
    const bare = (facts.nodes ?? []).filter(({ name, ready }) => ready && !with_.has(name));
    if (away.length + bare.length === 0)
      return excluded(`the caches on all ${caches.length} nodes are ready`);
    return {
      severity: away.length > 0 ? 'critical' : 'warning',
      confidence: away.length > 0 ? 0.85 : 0.7,
      seen: [
        away.length > 0 && `These caches are not ready: ${listed(away.map(stateOf))}.`,
        bare.length > 0 && `These nodes have no cache: ${listed(bare.map(({ name }) => name))}.`,
      ],
      affected: [
        ...away.map(({ node }) => `node ${node}`),
        ...bare.map(({ name }) => `node ${name}`),
      ],
      why: 'Pods on such a node query its cache at the link-local address, or the cache’s rules exempt queries to the Service from translation. While the cache is down, these queries get no reply.',
      fix: [
        `Run kubectl -n ${facts.namespace} describe pod ${away[0]?.name ?? 'node-local-dns-…'} to see why the cache is not ready.`,
        'To restore DNS at once, remove the cache’s interface and NOTRACK rules on the node, so that queries go to the Service again. ndots node-cache does this itself.',
      ],
      prove:
        'in a pod on that node, run ndots query kubernetes.default @169.254.20.10, then the same at the Service’s address',
      disproved: 'both addresses answer',
    };
  },
};
