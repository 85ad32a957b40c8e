/**
 * What the linter says of the configuration that runs and of what must be there before it starts,
 * and whether it is what runs.
 */
import { excluded, unknown } from '../../findings/finding.ts';
import { listed } from '../../texts.ts';
import type { LintFinding } from '../../../lint/finding.ts';
import { nameOf } from '../facts.ts';
import { START_WITHOUT_WEBHOOK } from '../wanted.ts';
import { clusterRule, finding, lintCommand, type ClusterRule } from './rule.ts';

/** The configuration has errors. */
export const flaws: ClusterRule = clusterRule(
  {
    code: 'ND1001',
    title: 'The configuration has errors, by the rules of the linter',
    name: 'errors of the configuration',
  },
  (facts, about) => {
    const { configuration } = facts;
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
      fix: [`${lintCommand(facts)} shows the lines, and what to write; --explain CODE tells why.`],
      prove: lintCommand(facts),
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

/** The rule of the linter about webhooks. */
const WEBHOOK_RULE = 'CF42';

/** A webhook is asked before a DNS pod starts, and may itself wait for DNS. */
export const coldStart: ClusterRule = clusterRule(
  {
    code: 'ND1003',
    title: 'DNS pods do not start while a webhook is away, and that may wait for DNS',
    name: 'a webhook that DNS pods wait for',
  },
  ({ configuration, lacking }, about) => {
    if (lacking.some(({ so }) => so === START_WITHOUT_WEBHOOK))
      return unknown('webhooks could not be listed');
    const found = (configuration?.findings ?? []).filter(({ code }) => code === WEBHOOK_RULE);
    if (found.length === 0) return excluded('no webhook has to answer before DNS pods start');
    return finding(about, {
      severity: 'info',
      confidence: 0.7,
      seen: found.slice(0, 5).map(({ text }) => `${text[0]!.toUpperCase()}${text.slice(1)}.`),
      why: 'After a cold start of the cluster the webhook’s pods wait for DNS, to pull images or to reach what they need, and DNS pods for the webhook: neither starts.',
      fix: [...new Set(found.flatMap(({ remedy }) => remedy ?? []))],
      prove:
        'kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml: failurePolicy Fail, a service, and pods of kube-system among what it is asked about',
      disproved:
        'the webhook’s service has pods that need no name to start (hostNetwork, addresses)',
    });
  },
);

/** The rule of the linter about readiness and lameduck. */
const READINESS_RULE = 'CF59';

/** kube-proxy sends known ports to a terminating pod until it is unready. */
export const lossyRollouts: ClusterRule = clusterRule(
  {
    code: 'ND1004',
    title: 'Each rollout of the DNS pods loses queries',
    name: 'readiness that fails after lameduck',
  },
  ({ configuration }, about) => {
    if (configuration === null) return unknown('no Corefile could be read');
    const found = configuration.findings.filter(({ code }) => code === READINESS_RULE);
    if (found.length === 0)
      return excluded('no readiness probe of DNS pods is known to fail after lameduck');
    return finding(about, {
      severity: 'info',
      confidence: 0.8,
      seen: found.slice(0, 5).map(({ text }) => `${text[0]!.toUpperCase()}${text.slice(1)}.`),
      why: 'A terminating pod gets no new connections, but a client that uses a source port again still reaches it: kube-proxy removes tracked connections only when the pod is no longer serving. In a real cluster 300 queries a second lost 7 to 97 in each rollout.',
      fix: [...new Set(found.flatMap(({ remedy }) => remedy ?? []))],
      prove: 'ndots rollout rehearse --model --max-unavailable 1 --ports random --rate 300',
      disproved: 'the nodes do not use kube-proxy, or the DNS pods have no Service',
    });
  },
);

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
        `${lintCommand(facts)} judges what is written.`,
      ],
      prove: 'coredns_reload_version_info of each pod',
      disproved: 'they are the same a minute later: a change reaches pods within that time',
    });
  },
);
