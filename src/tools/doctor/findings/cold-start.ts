/** A webhook that is called before a DNS pod starts, and may itself wait for DNS. */
import { capitalised } from '../texts.ts';
import { START_WITHOUT_WEBHOOK } from '../cluster/wanted.ts';
import { type FindingKind, excluded, unknown } from './finding.ts';

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
      severity: 'info',
      confidence: 0.7,
      seen: found.slice(0, 5).map(({ text }) => `${capitalised(text)}.`),
      why: 'After a cold start of the cluster, the webhook’s pods wait for DNS to pull images or to reach other services. The DNS pods wait for the webhook, so neither can start.',
      fix: [...new Set(found.flatMap(({ remedy }) => remedy ?? []))],
      prove:
        'run kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml and look for failurePolicy Fail, a Service, and rules that match pods in kube-system',
      disproved: 'the webhook’s pods do not need DNS to start (hostNetwork, IP addresses)',
    };
  },
};

/** The lint rule about webhooks. */
const WEBHOOK_RULE = 'CF42';
