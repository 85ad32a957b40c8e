/** Errors in the configuration, and the two lint rules that have findings of their own. */
import { lintCommand } from '../cluster/facts.ts';
import { START_WITHOUT_WEBHOOK } from '../cluster/wanted.ts';
import type { LintFinding } from '../../lint/finding.ts';
import { capitalised, listed } from '../texts.ts';
import { type FindingKind, type FoundCause, excluded, unknown } from './finding.ts';

export const flaws: FindingKind = {
  code: 'ND1001',
  title: 'The configuration has errors that ndots lint reports',
  name: 'errors in the configuration',
  inCluster(facts) {
    const { configuration } = facts;
    if (configuration === null) return unknown('no Corefile could be read');
    const errors = configuration.findings.filter(({ severity }) => severity === 'error');
    const warnings = configuration.findings.filter(({ severity }) => severity === 'warning');
    const codes = warnings.map(({ code }) => code);
    if (errors.length === 0)
      return excluded(
        `ndots lint finds no errors${codes.length > 0 ? `, only warnings (${listed(codes, 6)})` : ''}`,
      );
    return {
      severity: 'warning',
      confidence: 0.8,
      seen: errors.slice(0, 5).map(({ code, text }) => `${code}: ${text}.`),
      affected: [...new Set(errors.map(placeOf))],
      why: 'Lint reports an error if a configuration breaks resolution, either now or at the next restart. Running servers may still use the previous configuration.',
      fix: [
        `Run ${lintCommand(facts)}, which shows the lines and how to correct them. With --explain CODE, it explains a rule.`,
      ],
      prove: lintCommand(facts),
      disproved: '',
      places: errors.slice(0, 5).map((each) => `${placeOf(each)}:${each.spot.line}`),
    };
  },
};

function placeOf({ spot, within }: LintFinding): string {
  return `${spot.file}${within === null ? '' : ` ${within}`}`;
}

/** A webhook is asked before a DNS pod starts, and may itself wait for DNS. */
export const coldStart: FindingKind = {
  code: 'ND1003',
  title: 'DNS pods do not start while a webhook is down that may wait for DNS',
  name: 'a webhook that DNS pods wait for',
  inCluster({ configuration, lacking }) {
    if (lacking.some(({ so }) => so === START_WITHOUT_WEBHOOK))
      return unknown('webhooks could not be listed');
    const found = (configuration?.findings ?? []).filter(({ code }) => code === WEBHOOK_RULE);
    if (found.length === 0) return excluded('no webhook has to answer before DNS pods start');
    return {
      ...ofRule(found),
      confidence: 0.7,
      why: 'After a cold start of the cluster, the webhook’s pods wait for DNS to pull images or to reach other services. The DNS pods wait for the webhook, so neither can start.',
      prove:
        'run kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml and look for failurePolicy Fail, a Service, and rules that match pods in kube-system',
      disproved: 'the webhook’s pods do not need DNS to start (hostNetwork, IP addresses)',
    };
  },
};

/** kube-proxy keeps sending known source ports to a terminating pod until it is unready. */
export const lossyRollouts: FindingKind = {
  code: 'ND1004',
  title: 'Each rollout of the DNS pods loses queries',
  name: 'rollouts that lose queries',
  inCluster({ configuration }) {
    if (configuration === null) return unknown('no Corefile could be read');
    const found = configuration.findings.filter(({ code }) => code === READINESS_RULE);
    if (found.length === 0)
      return excluded(
        'no DNS pod is known to have a readiness probe that fails only after lameduck',
      );
    return {
      ...ofRule(found),
      confidence: 0.8,
      why: 'A terminating pod gets no new connections, but a client that reuses a source port still reaches it. kube-proxy removes tracked connections only when the pod is no longer serving. In a real cluster with 300 queries a second, each rollout lost 7 to 97 queries.',
      prove: 'ndots rollout rehearse --model --max-unavailable 1 --ports random --rate 300',
      disproved: 'the nodes do not use kube-proxy, or the DNS pods have no Service',
    };
  },
};

/** The lint rule about webhooks. */
const WEBHOOK_RULE = 'CF42';
/** The lint rule about readiness and lameduck. */
const READINESS_RULE = 'CF59';

function ofRule(found: readonly LintFinding[]): Pick<FoundCause, 'severity' | 'seen' | 'fix'> {
  return {
    severity: 'info',
    seen: found.slice(0, 5).map(({ text }) => `${capitalised(text)}.`),
    fix: [...new Set(found.flatMap(({ remedy }) => remedy ?? []))],
  };
}
