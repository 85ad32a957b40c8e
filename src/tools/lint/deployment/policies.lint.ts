/** Rules about NetworkPolicies and admission webhooks that affect DNS. */
import {
  child,
  children,
  list,
  text,
  texts,
  type JsonObject,
} from '../../../server/base/json-object.ts';
import { allowsDns, namesDns } from '../network-policy.ts';
import { objectRule, type LintRule } from '../lint-rule.ts';

const blocked: LintRule = objectRule({
  code: 'CF41',
  severity: 'warning',
  summary: 'a NetworkPolicy that allows DNS over only one of UDP and TCP, or blocks node-cache',
  kinds: ['NetworkPolicy'],
  find(object, tell, { corefiles }) {
    const spec = child(object.value, 'spec');
    if (!texts(spec, 'policyTypes').includes('Egress') && spec['egress'] === undefined) return;
    const rules = children(spec, 'egress');
    const overTcp = rules.findIndex((rule) => namesDns(rule, 'TCP'));
    if (overTcp >= 0 && !rules.some((rule) => allowsDns(rule, 'UDP')))
      tell({
        at: { object, path: ['spec', 'egress', overTcp] },
        text: `${object.name} allows DNS only over TCP`,
        severity: 'error',
        hint: 'A port without protocol means TCP. Nearly all queries use UDP and are dropped.',
        remedy: 'Add: - { protocol: UDP, port: 53 }',
      });
    const dns = rules.findIndex(
      (rule) => allowsDns(rule, 'UDP') && children(rule, 'ports').length > 0,
    );
    if (dns < 0) return;
    const at = { object, path: ['spec', 'egress', dns] };
    if (!rules.some((rule) => allowsDns(rule, 'TCP')))
      tell({
        at,
        text: `${object.name} allows DNS only over UDP`,
        hint: 'Answers that do not fit into a packet need TCP, so such names hang.',
        remedy: 'Add: - { protocol: TCP, port: 53 }',
      });
    const local = corefiles.some(({ role }) => role === 'node-cache');
    const peers = rules
      .filter((rule) => allowsDns(rule, 'UDP'))
      .flatMap((rule) => children(rule, 'to'));
    const open = rules.some((rule) => allowsDns(rule, 'UDP') && list(rule, 'to').length === 0);
    const byAddress = peers.some((peer) =>
      /^(169\.254\.|0\.0\.0\.0\/0)/.test(text(child(peer, 'ipBlock'), 'cidr')),
    );
    if (local && !open && !byAddress)
      tell({
        at,
        text: `${object.name} allows DNS only to pods, and no selector matches node-cache`,
        severity: 'error',
        hint: 'Pods query 169.254.20.10 on their node, so every query is dropped once node-cache runs.',
        remedy: 'Add: to: [{ ipBlock: { cidr: 169.254.20.10/32 } }]',
      });
  },
});

const deadlock: LintRule = objectRule({
  code: 'CF42',
  severity: 'note',
  summary: 'a webhook that must answer before DNS can start',
  kinds: ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'],
  find(object, tell) {
    children(object.value, 'webhooks').forEach((hook, index) => {
      if ((text(hook, 'failurePolicy') || 'Fail') !== 'Fail') return;
      if (Object.keys(child(child(hook, 'clientConfig'), 'service')).length === 0) return;
      if (Object.keys(child(hook, 'objectSelector')).length > 0) return;
      const pods = children(hook, 'rules').some((rule) =>
        texts(rule, 'resources').some((resource) =>
          ['pods', '*', '*/*', 'pods/*'].includes(resource),
        ),
      );
      if (!pods || !matchesKubeSystem(child(hook, 'namespaceSelector'))) return;
      tell({
        at: { object, path: ['webhooks', index, 'name'] },
        text: `no pod in kube-system starts while webhook ${text(hook, 'name')} is unavailable, including DNS`,
        hint: 'After a cold start, the webhook waits for DNS, and DNS waits for the webhook.',
        remedy:
          'Exclude kube-system: namespaceSelector with kubernetes.io/metadata.name NotIn [kube-system], or failurePolicy: Ignore.',
      });
    });
  },
});

/** True if a selector matches the kube-system namespace, judging by the labels that it has in every cluster. */
function matchesKubeSystem(selector: JsonObject): boolean {
  const name = 'kubernetes.io/metadata.name';
  for (const [key, value] of Object.entries(child(selector, 'matchLabels')))
    if (key !== name || value !== 'kube-system') return false;
  return children(selector, 'matchExpressions').every((expression) => {
    const values = texts(expression, 'values');
    const isName = text(expression, 'key') === name;
    switch (text(expression, 'operator')) {
      case 'In':
        return isName && values.includes('kube-system');
      case 'NotIn':
        // Other labels are unknown, and such selectors often exclude kube-system.
        return isName && !values.includes('kube-system');
      case 'Exists':
        return isName;
      default:
        return false;
    }
  });
}

export const policyRules: readonly LintRule[] = [blocked, deadlock];
