/** DNS pods that do not answer, or answer SERVFAIL for the cluster. */
import { deadBackend } from '../../findings/dead-backend.ts';
import { excluded, unknown } from '../../findings/finding.ts';
import { listed } from '../../texts.ts';
import { clusterServfail } from '../../findings/servfail.ts';
import { silentServer } from '../../findings/silent-server.ts';
import type { ServerReply } from '../asking.ts';
import { dnsSelectorOf, podAt, type ClusterFacts } from '../facts.ts';
import { askingRule, finding, type ClusterRule } from './rule.ts';

/**
 * Replies of addresses that a pod has: that others are behind the service is a finding of its own.
 */
function ofPods(replies: readonly ServerReply[], { pods }: ClusterFacts): readonly ServerReply[] {
  const known = new Set((pods ?? []).flatMap(({ addresses }) => addresses));
  return known.size === 0 ? replies : replies.filter(({ host }) => known.has(host));
}

/** No DNS pod answers. */
export const allSilent: ClusterRule = askingRule(silentServer, (answers, facts, about) => {
  const { vips } = answers;
  const replicas = ofPods(answers.replicas, facts);
  if (replicas.length === 0) return unknown('no DNS pod is known by its address');
  const silent = replicas.filter(({ asked }) => asked.reply === null);
  if (silent.length < replicas.length || vips.some(({ asked }) => asked.reply !== null))
    return excluded(`${replicas.length - silent.length} of ${replicas.length} DNS pods answer`);
  const reached = facts.measurement.direct;
  return finding(about, {
    severity: 'critical',
    // From a machine of which nothing shows that it is in the pod network it may be the way.
    confidence: reached ? 0.93 : 0.75,
    seen: [
      `None of ${replicas.length} DNS pods answers: ${listed(silent.map(({ server, outcome }) => `${podAt(facts, server)} ${outcome}`))}.`,
      ...(reached ? ['Their metrics are reached by the same addresses.'] : []),
    ],
    affected: silent.map(({ server }) => podAt(facts, server)),
    why: reached
      ? 'The pods are there and do not answer on their DNS port: the server hangs, listens elsewhere, or a policy drops what is for port 53.'
      : 'They hang, they are gone and nobody has noticed, or packets from here do not reach them: network policy, routes, the overlay network.',
    fix: [
      `Their log: kubectl -n ${facts.namespace} logs --all-containers -l '${dnsSelectorOf(facts)}'`,
      'A network policy of their namespace has to let UDP and TCP port 53 in from all pods.',
    ],
    prove: `ndots query kubernetes.default.svc.${answers.plan.domain} @${replicas[0]!.server}, here and on the node of the pod`,
    disproved: 'it is answered on the node of the pod: then it is the way there',
  });
});

/** Some DNS pods do not answer. */
export const someSilent: ClusterRule = askingRule(deadBackend, (answers, facts, about) => {
  const replicas = ofPods(answers.replicas, facts);
  const silent = replicas.filter(({ asked }) => asked.reply === null);
  if (replicas.length < 2) return unknown('fewer than two DNS pods are known by their addresses');
  if (silent.length === 0) return excluded(`all ${replicas.length} DNS pods answer`);
  if (silent.length === replicas.length) return unknown('none of the DNS pods answers');
  return finding(about, {
    severity: 'critical',
    confidence: 0.93,
    seen: [
      `${silent.length} of ${replicas.length} DNS pods do not answer by their own address: ${listed(silent.map(({ server, outcome }) => `${podAt(facts, server)} ${outcome}`))}.`,
    ],
    affected: silent.map(({ server }) => podAt(facts, server)),
    why: `The service hands ${silent.length} of ${replicas.length} queries to a pod from which nothing comes back. The client waits for its time-out (5 s with glibc and Go) and asks again, and may meet another pod then.`,
    fix: [
      `Delete the pod: kubectl -n ${facts.namespace} delete pod NAME; its log and its node tell why.`,
      'readinessProbe on /ready of the plugin ready, every few seconds, takes such a pod out of the service.',
    ],
    prove: `ndots query kubernetes.default.svc.${answers.plan.domain} @${silent[0]!.server}`,
    disproved:
      'it is answered from a pod on another node: then it is the way from here to that node',
  });
});

/** Names of the cluster are SERVFAIL. */
export const apiServerLost: ClusterRule = askingRule(clusterServfail, (answers, facts, about) => {
  const failing = answers.replicas.filter(({ outcome }) => outcome === 'SERVFAIL');
  const alive = answers.replicas.filter(({ asked }) => asked.reply !== null);
  if (alive.length === 0) return unknown('no DNS pod answers');
  if (failing.length === 0) return excluded('names of the cluster are answered');
  const outside = answers.external.filter(({ outcome }) => outcome === 'NOERROR');
  return finding(about, {
    severity: 'critical',
    confidence: outside.length > 0 ? 0.93 : 0.82,
    seen: [
      `${failing[0]!.name} is SERVFAIL at ${failing.length} of ${alive.length} DNS pods: ${listed(failing.map(({ server }) => podAt(facts, server)))}.`,
      ...(outside.length > 0 ? [`${outside[0]!.name} is answered.`] : []),
    ],
    affected: failing.map(({ server }) => podAt(facts, server)),
    why: 'The server answers, and lacks the objects of the cluster: it was started while the API server could not be reached, may not list what it needs, or is still reading.',
    fix: [
      `Its log: kubectl -n ${facts.namespace} logs -l '${dnsSelectorOf(facts)}' | grep -i -e reflector -e plugin/kubernetes`,
      'Its ClusterRole has to allow list and watch of services, namespaces and endpointslices (pods with pods verified).',
    ],
    prove: `ndots query ${failing[0]!.name} @${failing[0]!.server}: an Extended DNS Error may say why`,
    disproved: 'the log shows that the lists are synchronised',
  });
});
