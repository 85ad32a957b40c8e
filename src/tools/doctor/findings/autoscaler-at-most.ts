/** An autoscaler at its maximum, although the load needs more replicas. */
import type { ClusterFacts } from '../cluster/facts.ts';
import { type FindingKind, excluded, unknown } from './finding.ts';

export const autoscalerAtMost: FindingKind = {
  code: 'ND7003',
  title: 'The DNS autoscaler has reached its maximum number of replicas',
  name: 'a DNS autoscaler at its maximum',
  inCluster({ autoscalers }: ClusterFacts) {
    if (autoscalers === null) return unknown('autoscalers could not be listed');
    const full = autoscalers.filter(
      ({ current, desired, most }) => most > 0 && desired >= most && current >= most,
    );
    if (full.length === 0) return excluded('no DNS autoscaler is at its maximum');
    return {
      severity: 'warning',
      confidence: 0.8,
      seen: full.map(({ name, most }) => `${name} runs ${most} replicas, its maximum.`),
      affected: full.map(({ name }) => name),
      why: 'The current load already needs every pod that the autoscaler may create, so any further load would delay replies.',
      fix: [
        'Raise maxReplicas, or reduce the load with a cache on each node and fewer search domains.',
      ],
      prove: 'ndots size --metrics … shows how many replicas the load needs',
      disproved: 'the load is normal for this time of day, and replies are fast',
    };
  },
};
