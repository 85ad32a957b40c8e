/** Pods that cannot reach DNS, or that use another server. */
import { excluded, unknown } from '../../findings/finding.ts';
import { listed } from '../../texts.ts';
import { policyCut } from '../../findings/policy-cut.ts';
import type { ClientGroup } from '../pods.ts';
import { clusterRule, finding, type ClusterRule } from './rule.ts';

/** Pods that network policies do not let ask. */
export const policies: ClusterRule = clusterRule(policyCut, ({ cutOff, clientPods }, about) => {
  if (cutOff === null) return unknown('pods or network policies could not be listed');
  if (cutOff.length === 0)
    return excluded(`network policies let all ${clientPods} pods send to port 53`);
  const pods = cutOff.reduce((sum, { group }) => sum + group.pods, 0);
  const tcp = cutOff.filter(({ protocol }) => protocol === 'TCP');
  return finding(about, {
    severity: 'warning',
    confidence: 0.8,
    seen: [
      `${pods} of ${clientPods} pods are selected by policies of egress of which none lets them send to port 53${tcp.length === cutOff.length ? ' over TCP' : ''}: ${listed(cutOff.map(({ group }) => `${labelOf(group)} (${group.pods})`))}.`,
    ],
    affected: cutOff.map(({ group }) => labelOf(group)),
    why:
      tcp.length === cutOff.length
        ? 'A policy that names UDP only: answers that have to be fetched over TCP never come.'
        : 'Every lookup of these pods waits until its time is up. (Pods that need no names may be cut off on purpose.)',
    fix: [
      'Allow UDP and TCP port 53 to the DNS pods, and with a cache on each node to its address (ipBlock 169.254.20.10/32).',
    ],
    prove: `kubectl get networkpolicy -n ${cutOff[0]!.group.namespace} -o yaml`,
    disproved:
      'a policy of another kind (CiliumNetworkPolicy, AdminNetworkPolicy) allows it: those are not looked at',
    places: [...new Set(cutOff.flatMap((each) => each.policies))].map(
      (name) => `NetworkPolicy ${name}`,
    ),
  });
});

/** Pods whose DNS is another than the cluster's. */
export const others: ClusterRule = clusterRule(
  {
    code: 'ND2007',
    title: 'Some pods ask other servers than the DNS of the cluster',
    name: 'pods that ask elsewhere',
  },
  ({ clients, service, pods, namespace }, about) => {
    if (clients === null) return unknown('the pods of all namespaces could not be listed');
    const ours = new Set([
      ...(service?.vips ?? []).map(({ host }) => host),
      ...(pods ?? []).flatMap(({ addresses }) => addresses),
    ]);
    const isOther = ({
      policy,
      nameservers,
      hostNetwork,
      namespace: own,
    }: ClientGroup): boolean => {
      if (own === namespace || hostNetwork) return false;
      if (policy === 'Default') return true;
      return (
        policy === 'None' &&
        !nameservers.some((each) => ours.has(each) || each.startsWith('169.254.'))
      );
    };
    const found = service === null ? [] : clients.filter(isOther);
    if (found.length === 0) return excluded('pods ask the DNS of the cluster');
    const count = found.reduce((sum, { pods: number }) => sum + number, 0);
    return finding(about, {
      severity: 'info',
      confidence: 0.9,
      seen: [
        `${count} pods have dnsPolicy Default, or None with other servers: ${listed(found.map(labelOf))}.`,
      ],
      affected: found.map(labelOf),
      why: 'They know no names of services. Where they fail, it is not the DNS of the cluster.',
      fix: ['dnsPolicy: ClusterFirst, unless that is what is meant.'],
      prove: 'ndots trace NAME --from pod/NAME shows whom a pod asks',
      disproved: '',
    });
  },
);

function labelOf({ namespace, workload }: ClientGroup): string {
  return `${namespace}/${workload}`;
}
