/** The address of the service answers nobody, while the DNS pods behind it answer whoever asks them by their own. */
import { answered } from '../evidence/outcomes.ts';
import { excluded, listed, unknown, type Rule } from './finding.ts';
import { answeredElsewhere, lossesTo } from './losses.ts';

/** Names of the cluster are answered, but not at the address that pods are given. */
export const serviceSilent: Rule = {
  code: 'ND3018',
  title: 'The address of the DNS service does not answer, the DNS pods do',
  name: 'the address of the service',
  check(observed, claims) {
    const { servers, clients, names, domains } = observed;
    const inside = names.list.filter(({ name }) => domains.isOfCluster(name));
    const asked = (server: string): boolean => inside.some((view) => view.servers.has(server));
    const silent = servers.list.filter(
      ({ address, outcomes }) =>
        outcomes.asked >= 3 && answered(outcomes) === 0 && !clients.get(address) && asked(address),
    );
    if (silent.length === 0)
      return excluded('an address that is asked for names of the cluster answers');
    for (const { address, clients: theirs } of silent) {
      // Who asks it and is answered elsewhere has several servers: then it is one of these that is dead.
      if ([...theirs].some((client) => answeredElsewhere(observed, client, address).length > 0))
        continue;
      // Who asks both has two name servers in its resolv.conf, and the one is down.
      const pods = servers.list.filter(
        (other) =>
          other.address !== address &&
          inside.some(({ servers: own }) => (own.get(other.address)?.found ?? 0) > 0) &&
          ![...theirs].some((client) => other.clients.has(client)),
      );
      const losses = lossesTo(claims, address);
      if (pods.length === 0 || losses.length < 3) continue;
      // A query that was taken to a pod was translated.
      if (losses.some(({ hops }) => hops.length > 0)) continue;
      claims.take(losses);
      return {
        code: this.code,
        title: this.title,
        severity: 'critical',
        confidence: 0.88,
        seen: [
          `${losses.length} queries of ${theirs.size} ${theirs.size === 1 ? 'client' : 'clients'} went to ${address}, for names of the cluster, too, and none was answered or seen on its way to a pod.`,
          `${listed(pods.map((pod) => pod.address))} ${pods.length === 1 ? 'answers' : 'answer'} names of the cluster to others, who ask by that address.`,
        ],
        why: 'The servers are well, and what leads to them is not: kube-proxy has not written the service’s rules on this node (or they were flushed), the service has no endpoints although pods run, or the address is one that a node-local cache had and has left behind.',
        fix: [
          'See whether the service has endpoints: kubectl -n kube-system get service,endpointslices -l k8s-app=kube-dns',
          'See whether kube-proxy (or what stands in its place) runs on the node and is well: kubectl -n kube-system get pods -o wide -l k8s-app=kube-proxy; its log.',
        ],
        prove: `on the node: iptables-save | grep ${address} (ipvsadm -Ln, nft list ruleset): there has to be a rule for UDP port 53 that names the pods`,
        disproved: 'the rules are there and name these pods: then packets get lost behind them',
        exchanges: losses,
      };
    }
    return unknown('no DNS pod was asked by its own address');
  },
};
