/** DNS pods that do not run or are not ready. */
import type { MissingRight } from '../cluster/rights.ts';
import { stateOf } from '../cluster/pods.ts';
import { lintCommand, nameOf, serversOf } from '../cluster/facts.ts';
import { listed } from '../texts.ts';
import { type FindingKind, excluded, unknown, noPods } from './finding.ts';

export const podsNotReady: FindingKind = {
  code: 'ND5002',
  title: 'DNS pods are not ready',
  name: 'DNS pods that do not run',
  inCluster(facts) {
    if (facts.pods === null) return noPods;
    const servers = serversOf(facts).filter(({ leaving }) => !leaving);
    if (servers.length === 0)
      return unknown(`no pod in ${facts.namespace} is recognised as a DNS server`);
    const away = servers.filter(({ ready }) => !ready);
    if (away.length === 0) return excluded(`all ${servers.length} DNS pods are ready`);
    const all = away.length === servers.length;
    const denied = deniedTo(facts.missingRights ?? []);
    return {
      severity: all ? 'critical' : 'warning',
      confidence: all ? 0.97 : 0.9,
      seen: [
        `${away.length} of ${servers.length} DNS pods are not ready: ${listed(away.map(stateOf))}.`,
        ...denied.map(({ account, rights }) => `${account} is not allowed to ${listed(rights)}.`),
      ],
      affected: away.map(nameOf),
      why: all
        ? 'No DNS pod accepts queries, so every lookup in the cluster waits until it times out.'
        : 'The other pods carry the whole load and may not be able to if another one fails. A pod that keeps restarting logs the reason.',
      fix: [
        ...denied.map(
          ({ account }) =>
            `Give ${account} these permissions. Its ClusterRole must allow list and watch, and a ClusterRoleBinding must refer to it (system:coredns in kubeadm clusters). Check with kubectl auth can-i list services --all-namespaces --as ${account}.`,
        ),
        `Run kubectl -n ${facts.namespace} describe pod ${away[0]!.name}, and read the previous container’s log with kubectl -n ${facts.namespace} logs --previous ${away[0]!.name}.`,
        `If the log says that the Corefile cannot be loaded, ${lintCommand(facts)} shows the line.`,
      ],
      prove: `kubectl -n ${facts.namespace} get pods -o wide`,
      disproved: 'the pods are ready a minute later (then a rollout was in progress)',
    };
  },
};

/** The missing permissions of each account, such as `list services`. */
function deniedTo(
  missing: readonly MissingRight[],
): readonly { readonly account: string; readonly rights: readonly string[] }[] {
  return [...Map.groupBy(missing, ({ account }) => account)].map(([account, rights]) => ({
    account,
    rights: rights.map(({ verb, resource }) => `${verb} ${resource}`),
  }));
}
