/** DNS pods that do not run. */
import { lintCommand } from '../cluster/lint-command.ts';
import type { MissingRight } from '../cluster/rights.ts';
import { stateOf } from '../cluster/pods.ts';
import { nameOf, serversOf } from '../cluster/facts.ts';
import { listed } from '../texts.ts';
import { type FindingKind, excluded, unknown, clusterFinding, noPods } from './finding.ts';

/** DNS pods that do not run. */
export const podsNotReady: FindingKind = {
  code: 'ND5002',
  title: 'DNS pods are not ready',
  name: 'DNS pods that do not run',
  inCluster(facts) {
    if (facts.pods === null) return noPods;
    const servers = serversOf(facts).filter(({ leaving }) => !leaving);
    if (servers.length === 0)
      return unknown(`no pod in ${facts.namespace} is recognized as a DNS server`);
    const away = servers.filter(({ ready }) => !ready);
    if (away.length === 0) return excluded(`all ${servers.length} DNS pods are ready`);
    const all = away.length === servers.length;
    const denied = deniedTo(facts.missingRights ?? []);
    return clusterFinding(this, {
      severity: all ? 'critical' : 'warning',
      confidence: all ? 0.97 : 0.9,
      seen: [
        `${away.length} of ${servers.length} DNS pods are not ready: ${listed(away.map(stateOf))}.`,
        ...denied.map(({ account, rights }) => `${account} is not allowed to ${listed(rights)}.`),
      ],
      affected: away.map(nameOf),
      why: all
        ? 'No DNS pod accepts queries, so every lookup in the cluster waits until it times out.'
        : 'The others carry the whole load, and the next failure may be one too many. A pod that keeps restarting logs the reason.',
      fix: [
        ...denied.map(
          ({ account }) =>
            `Give ${account} these rights: its ClusterRole must allow list and watch, and a ClusterRoleBinding must refer to it (in kubeadm clusters: system:coredns). Check with kubectl auth can-i list services --all-namespaces --as ${account}`,
        ),
        `kubectl -n ${facts.namespace} describe pod ${away[0]!.name}, and the previous container’s log: kubectl -n ${facts.namespace} logs --previous ${away[0]!.name}`,
        `If the Corefile cannot be loaded, ${lintCommand(facts)} shows the line.`,
      ],
      prove: `kubectl -n ${facts.namespace} get pods -o wide`,
      disproved: 'the pods are ready a minute later, as after a rollout',
    });
  },
};

/** By account: `list services`. */
function deniedTo(
  missing: readonly MissingRight[],
): readonly { readonly account: string; readonly rights: readonly string[] }[] {
  return [...Map.groupBy(missing, ({ account }) => account)].map(([account, rights]) => ({
    account,
    rights: rights.map(({ verb, resource }) => `${verb} ${resource}`),
  }));
}
