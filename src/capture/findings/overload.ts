import { excluded, share, unknown, type Rule } from './finding.ts';
import { lossesTo } from './losses.ts';

/** A server that answers ever later, and then not at all. */
export const overload: Rule = {
  code: 'ND7001',
  title: 'A name server cannot keep up: replies come late, then not at all',
  name: 'an overloaded server',
  check(observed, claims) {
    if (observed.total.asked < 20) return unknown('too few queries to judge by');
    for (const server of observed.servers.list) {
      const { outcomes, history } = server;
      const quiet = history.filter(([, { lost, asked }]) => asked > lost && lost === 0);
      const lossy = history.filter(([, { lost, asked }]) => lost > 0.05 * asked && asked > lost);
      const mean = (list: typeof history): number => {
        const asked = list.reduce((sum, [, second]) => sum + second.asked - second.lost, 0);
        return asked === 0
          ? 0
          : list.reduce((sum, [, second]) => sum + second.latencyMs, 0) / asked;
      };
      const before = mean(quiet);
      const within = mean(lossy);
      const slow = within > 150 && (quiet.length === 0 ? within > 500 : within > 4 * before);
      const losses = lossesTo(claims, server.address);
      if (!slow || losses.length < 5 || outcomes.lost < 0.02 * outcomes.asked) continue;
      claims.take(losses);
      const rejects =
        (observed.counters.get('concurrentRejects') ?? 0) +
        (observed.counters.get('shedDropped') ?? 0);
      const killed = observed.counters.get('oomKilled') ?? 0;
      return {
        code: this.code,
        title: this.title,
        severity: 'critical',
        confidence: rejects + killed > 0 ? 0.95 : 0.85,
        seen: [
          `${server.address}: replies took ${within.toFixed(0)} ms on average in the seconds in which queries got lost, ${before.toFixed(1)} ms in the others.`,
          `${share(outcomes.lost, outcomes.asked)} got no reply; most in one second: ${Math.max(...history.map(([, second]) => second.asked))} queries.`,
          ...(killed > 0
            ? [`The kernel or Kubernetes ended a process for its memory ${killed} times.`]
            : []),
          ...(rejects > 0
            ? [`CoreDNS refused or dropped ${rejects} queries because too many waited.`]
            : []),
        ],
        why: 'Queries come faster than they are answered: the processor of the server is at its limit (or throttled by it), or what it asks itself is slow and everybody waits. Clients then ask again, which makes more of the same.',
        fix: [
          'More replicas, and no CPU limit on the DNS pods (it throttles them in bursts).',
          'Fewer queries: a node-local cache; lower ndots for pods that ask for external names.',
          'max_concurrent in forward bounds what waits for a slow upstream.',
        ],
        prove:
          'kubectl -n kube-system top pods -l k8s-app=kube-dns; container_cpu_cfs_throttled_periods_total; coredns_forward_max_concurrent_rejects_total',
        disproved:
          'the server’s own latency metric (coredns_dns_request_duration_seconds) stays low meanwhile',
        exchanges: losses,
      };
    }
    return excluded('servers that lose queries answer the others as fast as ever');
  },
};
