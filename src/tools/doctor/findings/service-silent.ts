/**
 * A Service address without replies, while the DNS pods behind it answer at their own addresses.
 */
import { podAt } from '../cluster/facts.ts';
import { answered } from '../observe/outcomes.ts';
import type { ServerView } from '../observe/server-view.ts';
import { excluded, unknown, type FindingKind, notAsked } from './finding.ts';
import { clock, listed } from '../texts.ts';
import { ServerLists } from '../observe/server-lists.ts';
import { askedForCluster, askersText } from '../observe/roles.ts';
import { MIN_CASES, OVERTAKEN_MS } from '../thresholds/evidence.ts';
import { ADDRESS_SILENT, MAX_SILENT_ADDRESSES, POD_WELL } from '../thresholds/silence.ts';

/** Cluster names are answered, but not at the address in the pods' resolv.conf. */
export const serviceSilent: FindingKind = {
  code: 'ND3018',
  title: 'The DNS Service’s address does not answer, although the DNS pods do',
  name: 'a Service address that does not answer',
  inCapture(observed, claims) {
    const { servers, clients, serverNames } = observed;
    const ofCluster = askedForCluster(observed);
    const silent = servers.list
      .filter((view) => {
        const { address, outcomes } = view;
        const isAsked = ofCluster.found.has(address) || ofCluster.other.has(address);
        return outcomes.asked >= MIN_CASES && fellSilent(view) && !clients.get(address) && isAsked;
      })
      .toSorted((one, other) => other.outcomes.asked - one.outcomes.asked)
      .slice(0, MAX_SILENT_ADDRESSES);
    if (silent.length === 0)
      return excluded('every address that is queried for cluster names answers');
    const lists = new ServerLists(observed);
    for (const { address, clients: theirs, lastReplyMs } of silent) {
      // A client with replies from elsewhere has several servers, one of which is dead.
      if ([...theirs].some((client) => lists.answeredElsewhere(client, address).length > 0))
        continue;
      // A client that uses both has two name servers in its resolv.conf, and this one is down.
      const pods = servers.list.filter(
        (other) =>
          other.address !== address &&
          // A client in the other IP family may be the same pod.
          serverNames.isIpv6(other.address) === serverNames.isIpv6(address) &&
          ofCluster.found.has(other.address) &&
          isWellSince(other, lastReplyMs) &&
          ![...theirs].some((client) => other.clients.has(client)),
      );
      const losses = claims
        .openTo(address)
        .filter(({ sentMs }) => sentMs > lastReplyMs - OVERTAKEN_MS);
      const fell = Number.isFinite(lastReplyMs);
      if (pods.length === 0 || losses.length < MIN_CASES) continue;
      // A single client that is cut off looks the same if the others' queries are seen after the
      // translation.
      if (fell && theirs.size === 1) continue;
      // A query that reached a pod was translated.
      if (losses.some(({ hops }) => hops.length > 0)) continue;
      claims.take(losses);
      return {
        severity: 'critical',
        confidence: 0.88,
        seen: [
          fell && `${address} answered until ${clock(lastReplyMs)}.`,
          `${fell ? 'Since then, ' : ''}${losses.length} queries from ${askersText(observed, theirs)} went to ${address}, some of them for cluster names. None was answered or seen on its way to a pod.`,
          `${listed(pods.map((pod) => pod.address))} ${pods.length === 1 ? 'answers' : 'answer'} cluster names for other clients, which use that address.`,
        ],
        why: 'The servers are healthy, but the path to them is not. kube-proxy has not written the Service’s rules on this node (or they were flushed), the Service has no endpoints although pods run, or a node-local cache is gone but has left its address behind.',
        fix: [
          'Check whether the Service has endpoints (kubectl -n kube-system get service,endpointslices -l k8s-app=kube-dns).',
          'Check whether kube-proxy (or its replacement) is healthy on the node (kubectl -n kube-system get pods -o wide -l k8s-app=kube-proxy), and read its log.',
        ],
        prove: `on the node, iptables-save | grep ${address} (or ipvsadm -Ln, nft list ruleset) shows no rule for UDP port 53 that leads to the pods`,
        disproved: 'the rules exist and lead to these pods (then packets are lost further on)',
        exchanges: losses,
      };
    }
    return unknown('no DNS pod was queried at its own address');
  },
  inCluster(facts) {
    const { answers } = facts;
    if (answers === null) return notAsked;
    const { service, proxyMode } = facts;
    if (answers.vips.length === 0) return unknown('the address of the service is not known');
    const alive = answers.replicas.filter(({ asked }) => asked.reply !== null);
    const silent = answers.vips.filter(({ asked }) => asked.reply === null);
    const fresh = answers.checks.get('fresh')?.observations.filter((each) => each.lost > 0) ?? [];
    if (alive.length === 0) return unknown('no DNS pod answers at its own address either');
    if (silent.length === 0 && fresh.length === 0) return excluded('the Service’s address answers');
    const dead = answers.replicas.length - alive.length;
    // Another finding covers a dead pod that loses its share of the queries.
    if (silent.length === 0 && dead > 0)
      return excluded('the Service’s address answers, except for the silent pods');
    return {
      severity: silent.length > 0 ? 'critical' : 'warning',
      confidence: silent.length > 0 ? 0.9 : 0.6,
      seen: [
        ...silent.map(({ server, outcome }) => `A query to ${server} ended with ${outcome}.`),
        ...fresh.map(({ target, text }) => `${target}: ${text}.`),
        `${alive.length} of ${answers.replicas.length} DNS pods answer at their own address: ${listed(alive.map(({ server }) => podAt(facts, server)))}.`,
        proxyMode !== null && `kube-proxy’s mode is ${proxyMode}.`,
      ],
      affected: [
        `service ${service?.namespace}/${service?.name}`,
        'pods on this node, if not on all nodes',
      ],
      why: 'Queries to the Service’s address are translated on the node that sends them. The rules there are missing or out of date (kube-proxy is down), a policy drops the queries, or a node-local cache is gone but has left its address behind.',
      fix: [
        'On this node, check that kube-proxy (or its replacement) runs, and read its log.',
        'If the cluster uses NodeLocal DNSCache, check whether its pod runs here. Its address and rules remain even when it is gone.',
      ],
      prove:
        'on the node, look for the Service’s rules with iptables-save | grep KUBE-SVC | grep kube-dns, nft list ruleset or ipvsadm -Ln',
      disproved: 'the rules on this node exist and lead to the DNS pods',
    };
  },
};

/** True if it does not answer any client, or stops answering at some moment. */
function fellSilent({ outcomes, sinceReply, lastMs, lastReplyMs }: ServerView): boolean {
  if (answered(outcomes) === 0) return true;
  return sinceReply.length >= ADDRESS_SILENT.queries && lastMs - lastReplyMs >= ADDRESS_SILENT.ms;
}

/** True if it keeps answering (nearly) all queries. */
function isWellSince({ history }: ServerView, fromMs: number): boolean {
  const later = history.filter(([second]) => second * 1000 > fromMs);
  const asked = later.reduce((sum, [, second]) => sum + second.asked, 0);
  const lost = later.reduce((sum, [, second]) => sum + second.lost, 0);
  return asked - lost >= POD_WELL.replies && lost <= POD_WELL.lost * asked;
}
