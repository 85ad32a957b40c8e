/** Servers that ran into errors of their own. */
import { nameOf } from '../cluster/facts.ts';
import { type FindingKind, excluded, unknown, clusterFinding } from './finding.ts';

/** Servers that ran into errors of their own. */
export const panics: FindingKind = {
  code: 'ND5004',
  title: 'A DNS server panics because of a bug',
  name: 'errors of the server itself',
  inCluster({ measurement: { measured } }) {
    if (measured.length === 0) return unknown('no DNS pod’s metrics could be read');
    const counts = measured
      .map(({ pod, after }) => ({ pod, count: after.sum('coredns_panics_total') }))
      .filter(({ count }) => count > 0);
    if (counts.length === 0) return excluded('no panic is counted');
    return clusterFinding(this, {
      severity: 'warning',
      confidence: 0.9,
      seen: counts.map(({ pod, count }) => `${pod.name} counts ${count} panics since its start.`),
      affected: counts.map(({ pod }) => nameOf(pod)),
      why: 'There is a bug in the server or one of its plugins. Each query that triggered it got SERVFAIL.',
      fix: ['Find the stack trace in the log, and check whether a newer release fixes it.'],
      prove: 'coredns_panics_total, twice, and the log in between',
      disproved: '',
    });
  },
};
