/** A node that stops translating the address of the DNS service. */
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import { takeSilence } from '../observe/consequences.ts';
import { leftUntranslated } from '../observe/silent-causes.ts';
import { askersText, isServer } from '../observe/roles.ts';
import { clock, listed, share } from '../texts.ts';
import { MIN_CASES, MOST } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** Queries leave a node still addressed to the service, where others were translated to a pod. */
export const untranslatedService: FindingKind = {
  code: 'ND3018',
  title: 'The address of the DNS service does not answer, the DNS pods do',
  name: 'the address of the service',
  inCapture(observed, claims) {
    if (observed.backends.size === 0)
      return unknown('the capture shows no translation to a DNS pod (capture on the node, -i any)');
    for (const { address, clients } of observed.servers.list) {
      const pods = observed.backends.list.filter((view) =>
        [...view.clients].some((client) => clients.has(client)),
      );
      const open = claims.open.filter(({ server }) => server.address === address);
      const losses = open.filter((loss) => leftUntranslated(loss));
      if (pods.length === 0 || losses.length < MIN_CASES || losses.length < MOST * open.length)
        continue;
      const { fromMs, toMs } = sentSpan(losses);
      const theirs = losses.map(({ client }) => client.address);
      takeSilence(observed, claims, open);
      return {
        code: this.code,
        title:
          'A node does not translate the address of the DNS service: queries leave it unchanged',
        severity: 'critical',
        confidence: 0.93,
        seen: [
          `From ${clock(fromMs)} to ${clock(toMs)}, ${share(losses.length, open.length)} lost queries of ${askersText(observed, theirs)} left the node still addressed to ${address}: nothing translated them to a DNS pod.`,
          `Other queries to ${address} were translated to ${listed(pods.map((pod) => pod.address))}, and answered.`,
        ],
        why: 'No machine has a Service’s address. Rules on each node (from kube-proxy or its replacement) translate it to a pod. On the node of these clients they were missing at that time: kube-proxy ended, its rules were flushed (a firewall restart, iptables -F, nft flush ruleset), or they are not written yet. Other nodes and the DNS pods are healthy.',
        fix: [
          `On the node of ${listed(theirs)}, look for the rules of ${address}: iptables-save | grep ${address} (nft list ruleset, ipvsadm -Ln), also for UDP.`,
          'Restart kube-proxy (or its replacement) on that node, which writes them again, and read its log: kubectl -n kube-system get pods -o wide -l k8s-app=kube-proxy.',
          `Find what removed them at ${clock(fromMs)} UTC: firewalld, a firewall script, a package upgrade, or a second program that manages iptables.`,
        ],
        prove: `on the node: tcpdump -ni any udp port 53 and dst host ${address}: packets leave through the interface to the network, and none goes to a DNS pod`,
        disproved: `the rules for ${address} exist on that node, and count these packets`,
        exchanges: losses,
      };
    }
    return excluded('no lost query left a node still addressed to the DNS service');
  },
};

/** Queries of DNS pods leave a node with the pods’ addresses, where others left with that of the node. */
export const lostMasquerade: FindingKind = {
  code: 'ND3005',
  title: 'A name server never answers',
  name: 'a name server that is down',
  inCapture(observed, claims) {
    for (const { address } of observed.servers.list) {
      const open = claims.open.filter(({ server }) => server.address === address);
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
        code: this.code,
        title: 'A node no longer masquerades the queries of DNS pods: no reply finds its way back',
        severity: 'critical',
        confidence: 0.9,
        seen: [
          `From ${clock(fromMs)} on, ${share(losses.length, open.length)} lost queries of ${listed(pods)} to ${address} left the node with the address of the pod as their source. Earlier ones left with another address, and were answered.`,
        ],
        why: `The network of ${address} has a route back to the node, and most likely none to pods. The node’s rules that replace the source address (masquerade) are gone: flushed by a firewall, or not written by the CNI, kube-proxy or the ip-masq-agent.`,
        fix: [
          `Inspect the node’s source NAT rules: iptables-save -t nat | grep -e MASQUERADE -e ip-masq (nft list ruleset), and what changed at ${clock(fromMs)} UTC. Restart the CNI or agent that writes them.`,
          `Or give the network of ${address} a route to the pod network.`,
        ],
        prove: `on the node: tcpdump -ni any udp port 53 and dst host ${address}: packets leave with ${pods[0]} as their source`,
        disproved: `${address} has a route to ${pods[0]}, and replies to it leave there`,
        exchanges: losses,
      };
    }
    return excluded('no DNS pod’s query left a node without the translation that others had');
  },
};
