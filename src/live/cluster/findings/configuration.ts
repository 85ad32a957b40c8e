/** What the linter says of the configuration that runs, and whether it is what runs. */
import { excluded, listed, unknown } from '../../../capture/findings/finding.ts';
import type { LintFinding } from '../../../lint/finding.ts';
import { nameOf } from '../facts.ts';
import { clusterRule, finding, type ClusterRule } from './rule.ts';

/** The configuration has errors. */
export const flaws: ClusterRule = clusterRule(
  {
    code: 'ND1001',
    title: 'The configuration has errors, by the rules of the linter',
    name: 'errors of the configuration',
  },
  ({ configuration }, about) => {
    if (configuration === null) return unknown('no Corefile could be read');
    const errors = configuration.findings.filter(({ severity }) => severity === 'error');
    const warnings = configuration.findings.filter(({ severity }) => severity === 'warning');
    if (errors.length === 0)
      return excluded(
        `the linter finds no error${warnings.length > 0 ? `, but warnings: ${listed(codesOf(warnings), 6)}` : ''}`,
      );
    return finding(about, {
      severity: 'warning',
      confidence: 0.8,
      seen: errors.slice(0, 5).map(({ code, text }) => `${code}: ${text}.`),
      affected: [
        ...new Set(
          errors.map(({ spot, within }) => `${spot.file}${within === null ? '' : ` ${within}`}`),
        ),
      ],
      why: 'Rules that are errors are about what breaks resolution, or will with the next restart: running servers may still have what was there before.',
      fix: ['ndots lint --cluster shows the lines, and what to write; --explain CODE tells why.'],
      prove: 'ndots lint --cluster',
      disproved: '',
      places: errors
        .slice(0, 5)
        .map(
          ({ spot, within }) => `${spot.file}${within === null ? '' : ` ${within}`}:${spot.line}`,
        ),
    });
  },
);

function codesOf(list: readonly LintFinding[]): readonly string[] {
  return [...new Set(list.map(({ code }) => code))];
}

/** Replicas run different configurations, or could not take the last one. */
export const reloads: ClusterRule = clusterRule(
  {
    code: 'ND1002',
    title: 'DNS pods do not all run the configuration that is written',
    name: 'configurations that were not taken',
  },
  (facts, about) => {
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
        ? unknown('DNS pods do not say which configuration they run (plugin reload)')
        : excluded('all DNS pods run the same configuration');
    const few = [...hashes.values()].toSorted((one, other) => one.length - other.length)[0] ?? [];
    return finding(about, {
      severity: 'warning',
      confidence: hashes.size > 1 ? 0.9 : 0.75,
      seen: [
        ...(hashes.size > 1
          ? [
              `${hashes.size} configurations are in use: ${[...hashes].map(([hash, list]) => `${hash.slice(0, 8)}… by ${listed(list.map(({ pod }) => pod.name))}`).join('; ')}.`,
            ]
          : []),
        ...failed.map(
          ({ pod, after }) =>
            `${pod.name} counts ${after.sum('coredns_reload_failed_total')} reloads that failed since its start.`,
        ),
      ],
      affected: (hashes.size > 1 ? few.map(({ pod }) => pod) : failed.map(({ pod }) => pod)).map(
        nameOf,
      ),
      why: 'A Corefile that cannot be loaded leaves the one before in service until the pod restarts, and then it does not start. While replicas differ, answers depend on which one is asked.',
      fix: [
        `Its log says which line: kubectl -n ${facts.namespace} logs ${(failed[0] ?? measured[0]!).pod.name} | grep -i reload`,
        'ndots lint --cluster judges what is written.',
      ],
      prove: 'coredns_reload_version_info of each pod',
      disproved: 'they are the same a minute later: a change reaches pods within that time',
    });
  },
);
