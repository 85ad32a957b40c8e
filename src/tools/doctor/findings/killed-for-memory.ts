/** DNS pods that were killed for their memory use, or are close to it. */
import { nameOf } from '../cluster/facts.ts';
import { type FindingKind, excluded, unknown, noPods } from './finding.ts';
import { MEMORY_FULL } from '../thresholds/lateness.ts';

export const killedForMemory: FindingKind = {
  code: 'ND7002',
  title: 'DNS pods are killed for using too much memory',
  name: 'DNS pods that run out of memory',
  inCluster(facts) {
    if (facts.pods === null) return noPods;
    const killed = facts.pods.filter(({ ended }) => ended === 'OOMKilled');
    const near = facts.measurement.measured.flatMap(({ pod, after }) => {
      const bytes = after.sum('process_resident_memory_bytes');
      const limit = pod.memoryLimit ?? 0;
      return limit > 0 && bytes > MEMORY_FULL * limit && !killed.includes(pod)
        ? [{ pod, bytes, limit }]
        : [];
    });
    if (killed.length + near.length === 0)
      return facts.pods.length === 0
        ? unknown('no DNS pod is known')
        : excluded('no DNS pod was killed for memory, and none is near its limit');
    const [first] = killed;
    return {
      severity: killed.length > 0 ? 'critical' : 'warning',
      confidence: killed.length > 0 ? 0.92 : 0.7,
      seen: [
        ...killed
          .slice(0, 3)
          .map(
            ({ name, restarts, endedAt }) =>
              `${name} was killed (OOMKilled) at ${endedAt || 'an unknown time'} and has restarted ${restarts} times.`,
          ),
        ...near
          .slice(0, 3)
          .map(
            ({ pod, bytes, limit }) =>
              `${pod.name} uses ${mebi(bytes)} of its limit of ${mebi(limit)}.`,
          ),
      ],
      affected: [...killed, ...near.map(({ pod }) => pod)].map(nameOf),
      why: 'Queries that wait for a slow upstream take memory, and so does listing all objects after the API server was down. All replicas get the same load, so they tend to fail together.',
      fix: [
        'Set forward { max_concurrent 1000 } to limit the waiting queries.',
        'Raise the memory limit to twice the usage on a busy day.',
        'Run a cache on each node, so that bursts do not reach these pods.',
      ],
      prove: `kubectl -n ${facts.namespace} get pod ${(first ?? near[0]!.pod).name} -o jsonpath='{.status.containerStatuses[*].lastState}'`,
      disproved: 'the last kill was long ago, and memory has stayed flat since',
    };
  },
};

function mebi(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`;
}
