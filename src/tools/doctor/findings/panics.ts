/** Servers that panicked because of a bug. */
import { nameOf } from '../cluster/facts.ts';
import { type FindingKind, excluded, unknown } from './finding.ts';

export const panics: FindingKind = {
  code: 'ND5004',
  title: 'A DNS server panics because of a bug',
  name: 'bugs in the server itself',
  inCluster({ measurement: { measured } }) {
    if (measured.length === 0) return unknown('no DNS pod’s metrics could be read');
    const counts = measured
      .map(({ pod, after }) => ({ pod, count: after.sum('coredns_panics_total') }))
      .filter(({ count }) => count > 0);
    if (counts.length === 0) return excluded('no DNS pod counts a panic');
    return {
      severity: 'warning',
      confidence: 0.9,
      seen: counts.map(
        ({ pod, count }) => `${pod.name} has counted ${count} panics since it started.`,
      ),
      affected: counts.map(({ pod }) => nameOf(pod)),
      why: 'The server or one of its plugins has a bug. Each query that triggered it got SERVFAIL.',
      fix: ['Find the stack trace in the log, and check whether a newer release fixes it.'],
      prove: 'read coredns_panics_total twice, and the log in between',
      disproved: '',
    };
  },
};
