/** An autoscaler that removes DNS pods because failing programs send fewer queries. */
import { trafficOf } from '../cluster/traffic.ts';
import { percent } from '../texts.ts';
import { type FindingKind, excluded, unknown } from './finding.ts';
import { MIN_MEASURED_QUERIES, OUTAGE_SHARE } from '../thresholds/evidence.ts';

export const shrinking: FindingKind = {
  code: 'ND7004',
  title: 'DNS fails while its autoscaler removes DNS pods',
  name: 'an autoscaler that shrinks during an outage',
  inCluster(facts) {
    if (facts.autoscalers === null) return unknown('autoscalers could not be listed');
    const shrinks = facts.autoscalers.filter(({ current, desired }) => desired < current);
    if (shrinks.length === 0) return excluded('no autoscaler removes DNS pods');
    const traffic = trafficOf(facts);
    const silent = (facts.answers?.replicas ?? []).filter(({ outcome }) => outcome !== 'NOERROR');
    const failing =
      traffic !== null && traffic.queries >= MIN_MEASURED_QUERIES ? traffic.servfail : 0;
    if (traffic === null && facts.answers === null)
      return unknown('the DNS pods could not be queried, and their metrics could not be read');
    if (failing < OUTAGE_SHARE && silent.length === 0)
      return excluded('DNS pods answer while they are scaled down');
    return {
      severity: 'critical',
      confidence: 0.85,
      seen: [
        ...shrinks.map(
          ({ name, current, desired }) =>
            `${name} is being scaled from ${current} replicas to ${desired}.`,
        ),
        failing >= OUTAGE_SHARE &&
          `${percent(traffic!.servfail, 1)} of the replies are SERVFAIL during this time.`,
        ...silent.map(({ server, outcome }) => `A query to ${server} ended with ${outcome}.`),
      ],
      affected: shrinks.map(({ name }) => name),
      why: 'Programs whose lookups fail do no work and send fewer queries. Query rate and CPU time both fall, which an autoscaler mistakes for a quiet hour. When the cause is fixed, all clients come back at once and find fewer DNS pods.',
      fix: [
        `For now, keep the current number of replicas with ${shrinks.map(({ name, current }) => `kubectl -n ${facts.namespace} patch hpa -p '{"spec":{"minReplicas":${current}}}' HPA (for ${name})`).join('; ')}.`,
        'Then fix the failures that the other findings show.',
        'Permanently, set behavior.scaleDown.stabilizationWindowSeconds to an hour, or scale replicas with cluster size (cluster-proportional-autoscaler) instead of load.',
      ],
      prove: `kubectl -n ${facts.namespace} describe hpa shows "New size … reason: All metrics below target" since the failures began`,
      disproved: 'the autoscaler had been scaling down since before the failures began',
    };
  },
};
