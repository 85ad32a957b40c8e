/** As many replicas as there may be, and more wanted. */
import type { ClusterFacts } from '../cluster/facts.ts';
import { type FindingKind, excluded, unknown, clusterFinding } from './finding.ts';

/** As many replicas as there may be, and more wanted. */
export const autoscalerAtMost: FindingKind = {
  code: 'ND7003',
  title: 'The autoscaler of the DNS pods is at its limit',
  name: 'an autoscaler at its limit',
  inCluster({ autoscalers }: ClusterFacts) {
    if (autoscalers === null) return unknown('autoscalers could not be listed');
    const full = autoscalers.filter(
      ({ current, desired, most }) => most > 0 && desired >= most && current >= most,
    );
    if (full.length === 0) return excluded('no autoscaler of DNS pods is at its limit');
    return clusterFinding(this, {
      severity: 'warning',
      confidence: 0.8,
      seen: full.map(({ name, most }) => `${name} has ${most} replicas, the most that it allows.`),
      affected: full.map(({ name }) => name),
      why: 'The load needs as many pods as the autoscaler may create, so more load would delay replies.',
      fix: ['Raise maxReplicas, or reduce the load: a cache on each node, fewer search domains.'],
      prove: 'ndots size --metrics … shows how many are needed',
      disproved: 'the load is normal for this hour, and replies are fast',
    });
  },
};
