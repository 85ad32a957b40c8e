/** Replicas that run different configurations or could not load the latest one. */
import { lintCommand, nameOf } from '../cluster/facts.ts';
import { listed } from '../texts.ts';
import { type FindingKind, excluded, unknown } from './finding.ts';

export const reloads: FindingKind = {
  code: 'ND1002',
  title: 'Not all DNS pods run the current Corefile',
  name: 'configurations that were not loaded',
  inCluster(facts) {
    const measured = facts.measurement.measured.filter(({ pod }) => pod.role === 'server');
    if (measured.length === 0) return unknown('no DNS pod’s metrics could be read');
    const failed = measured.filter(({ after }) => after.sum('coredns_reload_failed_total') > 0);
    const hashes = Map.groupBy(
      measured.flatMap(({ pod, after }) => {
        const hash = [...after.by('coredns_reload_version_info', 'value').keys()].join(' ').trim();
        return hash === '' ? [] : [{ pod, hash }];
      }),
      ({ hash }) => hash,
    );
    if (failed.length === 0 && hashes.size < 2)
      return hashes.size === 0
        ? unknown(
            'the DNS pods do not report which configuration they run (the reload plugin does)',
          )
        : excluded('all DNS pods run the same configuration');
    const few = [...hashes.values()].toSorted((one, other) => one.length - other.length)[0] ?? [];
    return {
      severity: 'warning',
      confidence: hashes.size > 1 ? 0.9 : 0.75,
      seen: [
        hashes.size > 1 &&
          `${hashes.size} configurations are in use: ${[...hashes].map(([hash, list]) => `${hash.slice(0, 8)}… by ${listed(list.map(({ pod }) => pod.name))}`).join('; ')}.`,
        ...failed.map(
          ({ pod, after }) =>
            `${pod.name} counts ${after.sum('coredns_reload_failed_total')} failed reloads since it started.`,
        ),
      ],
      affected: (hashes.size > 1 ? few.map(({ pod }) => pod) : failed.map(({ pod }) => pod)).map(
        nameOf,
      ),
      why: 'If a Corefile cannot be loaded, the previous one stays in use until the pod restarts, and then the pod does not start. While replicas differ, answers depend on which one is queried.',
      fix: [
        `Find the faulty line in the log with kubectl -n ${facts.namespace} logs ${(failed[0] ?? measured[0]!).pod.name} | grep -i reload.`,
        `Check the current Corefile with ${lintCommand(facts)}.`,
      ],
      prove: 'compare coredns_reload_version_info on all pods',
      disproved:
        'the versions are the same a minute later (then a change was just reaching the pods)',
    };
  },
};
