/** A node cache or DNS pod that sends names of the cluster to a resolver outside of it. */
import { netHolds, parseAddress, parseNet } from '../../../server/base/ip.ts';
import type { Observations } from '../observe/observations.ts';
import { askedForCluster, isForwarder, isLinkLocal } from '../observe/roles.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { listed, sentence } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** Clouds have their own resolvers here, such as 169.254.169.253, which are not node caches. */
const OF_CLOUD = parseNet('169.254.169.0/24')!;

/** The root denies cluster names that a forwarder sent there: its zone for the cluster is missing. */
export const clusterNamesUpstream: FindingKind = {
  code: 'ND4048',
  title: 'A DNS server forwards names of the cluster to a resolver that does not know the cluster',
  name: 'a server without a zone for the cluster',
  inCapture(observed, claims) {
    const { names, domains, replyFaults } = observed;
    if (!names.list.some(({ name }) => domains.isOfCluster(name)))
      return unknown('no cluster name was queried');
    const { found: knowing } = askedForCluster(observed);
    const denials = replyFaults.rootDenials.list.filter(
      ({ name, server }) =>
        domains.isOfCluster(name) && !claims.names.has(name) && !knowing.has(server),
    );
    const deniers = new Set(
      [...Map.groupBy(denials, ({ server }) => server)].flatMap(([server, all]) =>
        all.reduce((sum, { count }) => sum + count, 0) >= MIN_CASES ? server : [],
      ),
    );
    const denied = observed.affected
      .flatMap(({ exchanges }) => exchanges)
      .filter(({ name, server }) => domains.isOfCluster(name) && deniers.has(server.address));
    const byForwarder = denied.filter(({ client }) => isForwarder(observed, client.address));
    const byPod = denied.filter(({ client }) => !isForwarder(observed, client.address));
    const upstream = new Set(byForwarder.map(({ server }) => server.address));
    const middle = [...new Set(byPod.map(({ server }) => server.address))].filter(
      (address) => isNodeCache(address) || (!upstream.has(address) && upstream.size > 0),
    );
    // Pods that know another server ask two (ND2007).
    const isAsked = ({ client }: SeenExchange): boolean =>
      [...(observed.clients.get(client.address)?.servers.keys() ?? [])].some((at) =>
        knowing.has(at),
      );
    const pods = byPod.filter((each) => middle.includes(each.server.address) && !isAsked(each));
    const own = [...pods, ...byForwarder];
    const senders = [...new Set(byForwarder.map(({ client }) => client.address))];
    if (own.length < MIN_CASES || (pods.length === 0 && byPod.length > 0) || !isAll(own, observed))
      return excluded('no forwarder gets NXDOMAIN of the root for all names of the cluster');
    const servers = pods.length > 0 ? middle : senders;
    const wanted = [...new Set(own.map(({ name }) => name))];
    for (const { name } of names.list) if (domains.isOfCluster(name)) claims.names.add(name);
    const targets = [...upstream];
    const [example] = wanted;
    return {
      code: this.code,
      title: this.title,
      // Its own programs may be all that it serves.
      severity: pods.length === 0 && knowing.size > 0 ? 'warning' : 'critical',
      confidence: pods.length > 0 && targets.length > 0 ? 0.97 : 0.92,
      seen: [
        sentence(
          `${own.length} queries for names of the cluster got NXDOMAIN with the SOA record of the root: ${listed(wanted)}`,
        ),
        targets.length > 0
          ? `${listed(pods.length > 0 ? middle : senders)} ${servers.length === 1 ? 'sends' : 'send'} them to ${listed(targets)}, a resolver for the internet or the VPC${pods.length > 0 ? ` (from ${listed(senders)})` : ''}.`
          : `${listed(middle)}, an address on the node itself as node caches have, answered them, so it sends them to a resolver for the internet or the VPC. External names are answered.`,
        ...(knowing.size > 0 ? [`${listed([...knowing])} answers names of the cluster.`] : []),
      ],
      why: `${listed(servers)} forwards everything, the names of the cluster included. Its configuration lacks the block for the cluster domain (cluster.local, in-addr.arpa, ip6.arpa) that leads to the DNS of the cluster, or this block has another domain. External names work, and no Service is found by the pods that use it.`,
      fix: [
        `Give ${listed(servers)} a block for the cluster domain: in NodeLocal DNSCache, cluster.local:53 { forward . __PILLAR__CLUSTER__DNS__ } beside .:53 { forward . __PILLAR__UPSTREAM__SERVERS__ }; in dnsmasq, server=/cluster.local/CLUSTER-DNS.`,
        ...(pods.length > 0
          ? [
              'Until then, point the pods of this node at the address of the kube-dns Service (kubelet clusterDNS).',
            ]
          : [
              `If ${listed(senders)} is a node and not a DNS server of the cluster, pods there use its resolver: set dnsPolicy ClusterFirst (ClusterFirstWithHostNet with hostNetwork).`,
            ]),
      ],
      prove: `ndots query ${example} @${middle[0] ?? servers[0]}, and the same @ the address of the kube-dns Service`,
      disproved: `the configuration of ${servers[0]} has a block for this domain that leads to the DNS of the cluster`,
      exchanges: own,
    };
  },
};

function isNodeCache(address: string): boolean {
  const bytes = parseAddress(address);
  return bytes !== null && isLinkLocal(address) && !netHolds(OF_CLOUD, bytes);
}

/** True if these servers never find a name of the cluster. */
function isAll(own: readonly SeenExchange[], { names, domains }: Observations): boolean {
  const servers = new Set(own.map(({ server }) => server.address));
  return !names.list.some(
    (view) =>
      domains.isOfCluster(view.name) &&
      [...view.servers].some(([server, { found }]) => found > 0 && servers.has(server)),
  );
}
