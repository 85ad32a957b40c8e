/** A node that stops translating the DNS Service’s address. */
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Claims } from '../observe/claims.ts';
import { takeSilence } from '../observe/consequences.ts';
import { leftUntranslated } from '../observe/silent-causes.ts';
import { askersText, isServer } from '../observe/roles.ts';
import { capitalised, clock, fromTo, listed, share } from '../texts.ts';
import { MIN_CASES, MOST } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** Queries leave a node still addressed to the Service, while others are translated to a pod. */
export const untranslatedService: FindingKind = {
  code: 'ND3018',
  title: 'The DNS Service’s address does not answer, although the DNS pods do',
  name: 'a Service address that does not answer',
  inCapture(observed, claims) {
    if (observed.backends.size === 0)
      return unknown('the capture shows no translation to a DNS pod (capture on the node, -i any)');
    const byServer = openByServer(claims);
    for (const { address } of observed.servers.list) {
      const open = byServer.get(address) ?? [];
      const losses = open.filter((loss) => leftUntranslated(loss));
      if (losses.length < MIN_CASES || losses.length < MOST * open.length) continue;
      const pods = observed.backends.list.filter(({ services }) => services.has(address));
      if (pods.length === 0) continue;
      const { fromMs, toMs } = sentSpan(losses);
      const theirs = losses.map(({ client }) => client.address);
      takeSilence(observed, claims, open);
      return {
        title: 'A node does not translate the DNS Service’s address, so queries leave it unchanged',
        severity: 'critical',
        confidence: 0.93,
        seen: [
          `${capitalised(fromTo(fromMs, toMs))}, ${share(losses.length, open.length)} lost queries from ${askersText(observed, theirs)} left the node still addressed to ${address}, because nothing translated them to a DNS pod.`,
          `Other queries to ${address} were translated to ${listed(pods.map((pod) => pod.address))} and answered.`,
        ],
        why: 'No machine has a Service’s address. Rules on each node (from kube-proxy or its replacement) translate it to a pod. On these clients’ node, the rules were missing at that time: kube-proxy stopped, its rules were flushed (a firewall restart, iptables -F, nft flush ruleset), or they had not been written yet. Other nodes and the DNS pods are healthy.',
        fix: [
          `On the node of ${listed(theirs)}, look for rules for ${address}, also for UDP: iptables-save | grep ${address} (or nft list ruleset, ipvsadm -Ln).`,
          'Restart kube-proxy (or its replacement) on that node to write the rules again, and read its log. To find the pod, run kubectl -n kube-system get pods -o wide -l k8s-app=kube-proxy.',
          `Find what removed them at ${clock(fromMs)} UTC: firewalld, a firewall script, a package upgrade, or a second program that manages iptables.`,
        ],
        prove: `on the node, tcpdump -ni any udp port 53 and dst host ${address} shows packets that leave through the network interface, and none to a DNS pod`,
        disproved: `the rules for ${address} exist on that node and count these packets`,
        exchanges: losses,
      };
    }
    return excluded('no lost query left a node still addressed to the DNS Service');
  },
};

/** DNS pods’ queries leave a node with the pods’ addresses, while earlier ones left with the node’s address. */
export const lostMasquerade: FindingKind = {
  code: 'ND3005',
  title: 'A name server never answers',
  name: 'a name server that is down',
  inCapture(observed, claims) {
    const byServer = openByServer(claims);
    for (const { address } of observed.servers.list) {
      const open = byServer.get(address) ?? [];
      const losses = open.filter(
        ({ client, hops, routed }) =>
          routed === true &&
          hops.length === 0 &&
          isServer(observed, client.address) &&
          (observed.clients.get(client.address)?.translated ?? 0) >= MIN_CASES,
      );
      if (losses.length < MIN_CASES || losses.length < MOST * open.length) continue;
      const { fromMs } = sentSpan(losses);
      const pods = [...new Set(losses.map(({ client }) => client.address))];
      takeSilence(observed, claims, open);
      return {
        title: 'A node no longer masquerades DNS pods’ queries, so no reply finds its way back',
        severity: 'critical',
        confidence: 0.9,
        seen: [
          `Since ${clock(fromMs)}, ${share(losses.length, open.length)} lost queries from ${listed(pods)} to ${address} left the node with the pod’s address as their source. Earlier ones left with a different source address and were answered.`,
        ],
        why: `The network of ${address} has a route back to the node, but most likely none to pods. The node’s masquerade rules, which replace the source address, are gone. Either a firewall flushed them, or the CNI, kube-proxy or the ip-masq-agent did not write them.`,
        fix: [
          `Inspect the node’s source NAT rules (iptables-save -t nat | grep -e MASQUERADE -e ip-masq, or nft list ruleset), and find what changed at ${clock(fromMs)} UTC. Restart the CNI or the agent that writes them.`,
          `Alternatively, give the network of ${address} a route to the pod network.`,
        ],
        prove: `on the node, tcpdump -ni any udp port 53 and dst host ${address} shows packets that leave with ${pods[0]} as their source`,
        disproved: `${address} has a route to ${pods[0]} and sends its replies there`,
        exchanges: losses,
      };
    }
    return excluded(
      'no DNS pod’s query left a node without the translation that other queries had',
    );
  },
};

/** Unexplained losses by the address that they were sent to. */
function openByServer({ open }: Claims): ReadonlyMap<string, readonly SeenExchange[]> {
  return Map.groupBy(open, ({ server }) => server.address);
}
