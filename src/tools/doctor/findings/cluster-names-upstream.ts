/** A node cache or DNS pod that sends cluster names to a resolver outside the cluster. */
import { isBelow } from '../../../server/wire/within-zone.ts';
import type { Observations } from '../observe/observations.ts';
import { isCloudResolver } from '../observe/outside-address.ts';
import { askedForCluster, isForwarder, isLinkLocal } from '../observe/roles.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

const SERVICES = 'svc.';

/** The root denies cluster names that a forwarder sent upstream because it has no zone for the cluster. */
export const clusterNamesUpstream: FindingKind = {
  code: 'ND4048',
  title: 'A DNS server forwards cluster names to a resolver that does not know the cluster',
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
    const denied = observed.affectedExchanges(
      ({ name, server }) => domains.isOfCluster(name) && deniers.has(server.address),
    );
    const byForwarder = denied.filter(({ client }) => isForwarder(observed, client.address));
    const byPod = denied.filter(({ client }) => !isForwarder(observed, client.address));
    const upstream = new Set(byForwarder.map(({ server }) => server.address));
    const middle = [...new Set(byPod.map(({ server }) => server.address))].filter(
      (address) => isNodeCache(address) || (!upstream.has(address) && upstream.size > 0),
    );
    // Pods that also query a server that knows the cluster have two servers (ND2007).
    const isAsked = ({ client }: SeenExchange): boolean =>
      [...(observed.clients.get(client.address)?.servers.keys() ?? [])].some((at) =>
        knowing.has(at),
      );
    const pods = byPod.filter((each) => middle.includes(each.server.address) && !isAsked(each));
    const own = [...pods, ...byForwarder];
    const senders = [...new Set(byForwarder.map(({ client }) => client.address))];
    if (own.length < MIN_CASES || (pods.length === 0 && byPod.length > 0))
      return excluded('no forwarder gets NXDOMAIN from the root for all cluster names');
    const servers = pods.length > 0 ? middle : senders;
    const other = otherDomain(own, servers, observed);
    if (other !== null)
      return excluded(
        `${listed(servers)} has the cluster domain ${other}, and these names are not in it`,
      );
    const wanted = [...new Set(own.map(({ name }) => name))];
    for (const { name } of names.list) if (domains.isOfCluster(name)) claims.names.add(name);
    const targets = [...upstream];
    return {
      // It may serve only its own programs.
      severity: pods.length === 0 && knowing.size > 0 ? 'warning' : 'critical',
      confidence: pods.length > 0 && targets.length > 0 ? 0.97 : 0.92,
      seen: [
        `${own.length} queries for cluster names (${listed(wanted)}) got NXDOMAIN with the root’s SOA record`,
        targets.length > 0
          ? `${listed(servers)} ${servers.length === 1 ? 'sends' : 'send'} them to ${listed(targets)}, a resolver for the internet or the VPC${pods.length > 0 ? ` (from ${listed(senders)})` : ''}.`
          : `They were answered by ${listed(middle)}, a link-local address as node caches use, so the node cache forwards them to a resolver for the internet or the VPC. External names are answered.`,
        knowing.size > 0 &&
          `${listed([...knowing])} ${knowing.size === 1 ? 'answers' : 'answer'} cluster names.`,
      ],
      why: `${listed(servers)} ${servers.length === 1 ? 'forwards' : 'forward'} everything, including cluster names. The configuration has no block for the cluster domain (cluster.local, in-addr.arpa, ip6.arpa) that forwards to the cluster’s DNS, or this block has a different domain. External names resolve, but pods that use it cannot find any Service.`,
      fix: [
        `Give ${listed(servers)} a block for the cluster domain: in NodeLocal DNSCache, cluster.local:53 { forward . __PILLAR__CLUSTER__DNS__ } beside .:53 { forward . __PILLAR__UPSTREAM__SERVERS__ }; in dnsmasq, server=/cluster.local/CLUSTER-DNS.`,
        pods.length > 0
          ? 'Until then, point the pods of this node at the address of the kube-dns Service (kubelet clusterDNS).'
          : `If ${listed(senders)} is a node and not one of the cluster’s DNS servers, pods there use the node’s resolver. Set dnsPolicy ClusterFirst (ClusterFirstWithHostNet with hostNetwork).`,
      ],
      prove: `run ndots query ${wanted[0]} @${middle[0] ?? servers[0]}, then the same @ the address of the kube-dns Service`,
      disproved: `the configuration of ${servers[0]} has a block for this domain that forwards to the cluster’s DNS`,
      exchanges: own,
    };
  },
};

/**
 * Another cluster domain in which these servers find names themselves, if they find none in that of the denied ones:
 * then the search paths are wrong rather than the servers. Otherwise null.
 */
function otherDomain(
  denied: readonly SeenExchange[],
  servers: readonly string[],
  { names, domains }: Observations,
): string | null {
  const all = [...domains.all].flatMap((each) =>
    each.startsWith(SERVICES) ? each.slice(SERVICES.length) : [],
  );
  const isAnother = (domain: string): boolean => {
    if (denied.some(({ name }) => isBelow(name, domain))) return false;
    const below = names.list.filter(({ name }) => isBelow(name, domain));
    const finding = serversOfNames(below, ({ found }) => found > 0);
    return servers.some((server) => finding.has(server));
  };
  return all.find(isAnother) ?? null;
}

function isNodeCache(address: string): boolean {
  return isLinkLocal(address) && !isCloudResolver(address);
}
