/** Reasons for which a server never answers, as packets prove them. */
import { isLoopbackHost } from '../../../server/base/ip.ts';
import { commonZone } from '../../../server/wire/within-zone.ts';
import { TIME_EXCEEDED } from '../../capture/read/packets/dissect.ts';
import { type SeenExchange, sentSpan } from '../../capture/pair/seen-exchange.ts';
import { keysOf, listed, sentence, share } from '../texts.ts';
import { MIN_CASES, MOST, NEARLY_ALL } from '../thresholds/evidence.ts';
import { REACHED_ADDRESSES, ZONE_LABELS } from '../thresholds/silence.ts';
import type { Asked } from './client-view.ts';
import type { Observations } from './observations.ts';
import { openedDuring } from './other-contacts.ts';
import { answered } from './outcomes.ts';
import { isPrivate } from './private-address.ts';
import { isClosed, stubText, stubZone } from './stub-zone.ts';
import { askedForCluster, isForwarder, isServer } from './roles.ts';
import { makes } from './search-domains.ts';

/** The stub listener of systemd-resolved. */
const SYSTEMD_STUB = '127.0.0.53';

export interface SilentCause {
  readonly title: string;
  readonly seen: string;
  readonly why: string;
  readonly fix: readonly string[];
  /** True if no other fix applies. */
  readonly isComplete?: boolean;
}

/** @param losses queries to this address; null: the capture shows no reason */
export function silentCause(
  observed: Observations,
  address: string,
  losses: readonly SeenExchange[],
): SilentCause | null {
  return (
    hangs(observed, address) ??
    onLoopback(observed, address, losses) ??
    looped(observed, address) ??
    closedForZone(observed, address, losses) ??
    unserved(observed, address, losses) ??
    untranslated(observed, address, losses) ??
    unmasked(observed, address, losses) ??
    onlyDns(observed, losses)
  );
}

function hangs(observed: Observations, address: string): SilentCause | null {
  const seen = hungText(observed, address);
  if (seen === null) return null;
  return {
    title: 'A name server hangs, so it accepts connections but never answers',
    seen,
    why: 'The host is up, but the server process hangs because it is stopped, deadlocked or gets no CPU time. Its clients wait until they time out (mostly 5 s) for every name that leads to it.',
    fix: [
      `Check the threads and log of the server at ${address}, then restart it (kubectl -n kube-system get pods -o wide | grep ${address}).`,
      'Set a livenessProbe, which restarts such a process, and a readinessProbe on /ready, which removes its pod from the Service.',
    ],
  };
}

function onLoopback(
  observed: Observations,
  address: string,
  losses: readonly SeenExchange[],
): SilentCause | null {
  if (!isLoopbackHost(address)) return null;
  // A server that forwards to another one on its host uses the loopback on purpose.
  if (losses.some(({ client }) => isForwarder(observed, client.address))) return null;
  return {
    title: 'Pods use a loopback address as their name server, but nothing listens there',
    seen: `${address} is a loopback address, which refers to the pod itself.`,
    why: `${address} is ${address === SYSTEMD_STUB ? 'the stub of systemd-resolved' : 'a resolver'} on the machine whose resolv.conf this is. A pod has its own loopback interface, so nothing listens there. The file was copied into the pods by dnsPolicy Default, a dnsConfig, or their image.`,
    fix: [
      'Set dnsPolicy: ClusterFirst for these pods (ClusterFirstWithHostNet with hostNetwork), and remove the loopback address from their dnsConfig.',
      'If a pod needs dnsPolicy Default, make kubelet copy a file with the real servers (resolvConf: /run/systemd/resolve/resolv.conf), and recreate the pods.',
      'If a DNS proxy should run in the pod at this address, start it.',
    ],
    isComplete: true,
  };
}

/** A zone is forwarded to a host where no process listens on port 53. */
function closedForZone(
  observed: Observations,
  address: string,
  losses: readonly SeenExchange[],
): SilentCause | null {
  const zone = stubZone(observed, address, losses);
  if (zone === null || !isClosed(observed, address)) return null;
  const ports = observed.otherSockets.servers.list.flatMap((each) =>
    each.address === address ? each.port : [],
  );
  const domain = zone.slice(0, -1);
  const where = ports.length === 0 ? 'another port' : `UDP port ${listed(ports.map(String))}`;
  return {
    title: `Names in ${domain} are forwarded to ${address}, where nothing listens on port 53`,
    seen: `${stubText(zone, address)}${ports.length === 0 ? '' : ` The same host answers on ${where}.`}`,
    why: `The host ${address} is up but has no process on port 53, so every query for ${domain} is rejected (ICMP port unreachable) and becomes SERVFAIL. The DNS server for this zone has stopped, or it listens on ${where} (the DNS port of Consul is 8600).`,
    fix: [
      `Correct the address and port of ${domain} in the Corefile (stubDomains, a server block with forward): forward . ${address}:${ports[0] ?? 'PORT'}.`,
      `On ${address}, check which port the DNS server listens on (ss -lnup), and start it if it does not run.`,
    ],
    isComplete: true,
  };
}

function looped({ unreachable }: Observations, address: string): SilentCause | null {
  const errors = unreachable.get(address);
  if (errors?.code !== TIME_EXCEEDED) return null;
  return {
    title: 'Queries to a name server loop between routers (routing loop)',
    seen: `ICMP time exceeded came back from ${errors.sender} ${errors.count} times, because the packets’ TTL expired in transit.`,
    why: `Two routers send packets for ${address} to each other until their TTL expires. The first has a route to the network of ${address} through the second, which has none and sends them back by its default route. A VPN or tunnel that is down leaves such a loop.`,
    fix: [
      `Trace the path: traceroute -n ${address} (from the node and from ${errors.sender}) alternates between two addresses.`,
      `Correct the routes for ${address} on ${errors.sender} and the next router: bring up the VPN or tunnel, or withdraw the route that leads to it.`,
    ],
  };
}

/** Clients query this address, while others on the node query another one that is translated. */
function unserved(
  observed: Observations,
  address: string,
  losses: readonly SeenExchange[],
): SilentCause | null {
  const { servers, backends } = observed;
  const { found, other } = askedForCluster(observed);
  const theirs = new Set(losses.map(({ client }) => client.address));
  if (
    !other.has(address) ||
    losses.some(({ hops }) => hops.some((hop) => hop.server.address !== address))
  )
    return null;
  const translated = backends.list.filter((pod) => found.has(pod.address));
  const service = servers.list.find(
    (each) =>
      each.address !== address &&
      translated.some((pod) => [...each.clients].some((client) => pod.clients.has(client))) &&
      ![...each.clients].some((client) => theirs.has(client)),
  );
  if (service === undefined) return null;
  const { serverNames } = observed;
  if (serverNames.isIpv6(address) !== serverNames.isIpv6(service.address))
    return inOneFamily(observed, address, service.address);
  return {
    title:
      'Some pods use a name server address other than the DNS Service’s, where no server answers',
    seen: `${listed([...theirs])} query only ${address}, which the node does not translate to a pod. Other pods on the node query ${service.address}, which it translates to DNS pods, and get ${service.outcomes.asked - service.outcomes.lost} replies.`,
    why: `${service.address} is the DNS Service’s address, but some pods’ resolv.conf contains ${address} instead. Their node’s kubelet (clusterDNS, --cluster-dns) or their dnsConfig specifies an address from another cluster, or from a deleted Service. (If both are Services, the rules for ${address} are missing on this node.)`,
    fix: [
      `Compare kubectl -n kube-system get svc kube-dns with the resolv.conf of these pods; correct clusterDNS in the kubelet configuration (or dnsConfig) to ${service.address}, and restart kubelet and the pods.`,
    ],
  };
}

/** The node translates the DNS Service's address in the other IP family, so the rules for this one are missing. */
function inOneFamily(
  { serverNames, backends }: Observations,
  address: string,
  other: string,
): SilentCause {
  const [family, works] = serverNames.isIpv6(address) ? ['IPv6', 'IPv4'] : ['IPv4', 'IPv6'];
  const pods = backends.list.flatMap((pod) => (pod.served.size > 0 ? pod.address : []));
  const lists = family === 'IPv6' ? 'ip6tables-save' : 'iptables-save';
  return {
    title: `The node does not translate the DNS Service’s ${family} address, so the first name server of dual-stack pods never answers`,
    seen: `The node translates ${other} to DNS pods (${listed(pods)}), which answer, but leaves queries to ${address} unchanged, so they are lost.`,
    why: `${address} and ${other} are most likely both addresses of the DNS Service, which is dual-stack. The ${family} rules on this node are missing: kube-proxy handles only ${works} (its clusterCIDR or the node has one family), or ${lists.replace('-save', '')} rules were flushed or cannot be written. A pod that has ${address} first in its resolv.conf waits 5 s in each lookup before it queries the next server. Pods that have only ${works} are not affected.`,
    fix: [
      `On this node, check ${lists} | grep ${address} (nft list ruleset, ipvsadm -Ln) and the log of kube-proxy. Give kube-proxy both families (clusterCIDR with two prefixes, and a node address of each), and restart it.`,
      `Check whether the Service has this address and endpoints for it: kubectl -n kube-system get svc,endpointslices -l k8s-app=kube-dns -o wide. If ${address} is not among its addresses (clusterIPs), remove it from kubelet’s clusterDNS.`,
      `Until then, list ${other} first in the pods’ resolv.conf.`,
    ],
    isComplete: true,
  };
}

/** The clients' TCP connections to other addresses are accepted while their queries get no replies. */
function onlyDns(observed: Observations, losses: readonly SeenExchange[]): SilentCause | null {
  const clients = [...new Set(losses.map(({ client }) => client.address))];
  if (clients.some((client) => isForwarder(observed, client))) return null;
  const { fromMs, toMs } = sentSpan(losses);
  const opened = openedDuring(observed, clients, fromMs, toMs);
  const reached = (client: string): ReadonlySet<string> =>
    new Set(opened.flatMap((each) => (each.client === client ? each.server : [])));
  if (!clients.every((client) => reached(client).size >= REACHED_ADDRESSES)) return null;
  const addresses = opened.map(({ server }) => server);
  const pods = listed(clients);
  return {
    title: 'A pod’s DNS queries get no reply, while its TCP connections to other addresses work',
    seen: `During the same time, ${pods} opened TCP connections to ${listed(addresses)}, which were accepted, so the network works. No ICMP error rejected the queries.`,
    why: 'Packets to port 53 are dropped silently, while others pass. Most likely an egress NetworkPolicy (or a firewall on the node) selects this pod and does not allow port 53. A Service without endpoints would be rejected with ICMP by kube-proxy. If other pods get no replies either, the DNS pods are at fault.',
    fix: [
      `Find the policies that select ${pods} (kubectl get networkpolicy -A; CiliumNetworkPolicy and others as well), and allow UDP and TCP port 53 to the DNS pods, and to the node cache’s address if there is one.`,
      'Query the same address from another pod on the node. If it is answered there, a rule for this pod is the cause.',
    ],
  };
}

/** True if the query left the node for the same server, with any source address. */
export function leftUntranslated({ server, hops, routed }: SeenExchange): boolean {
  return (
    (routed === true || hops.length > 0) &&
    hops.every((hop) => hop.server.address === server.address)
  );
}

/** Queries for cluster names that leave the node for the same address, from another one. */
function untranslated(
  observed: Observations,
  address: string,
  losses: readonly SeenExchange[],
): SilentCause | null {
  if (!askedForCluster(observed).other.has(address)) return null;
  const out = losses.filter(
    (loss) =>
      leftUntranslated(loss) && loss.hops.some((hop) => hop.client.address !== loss.client.address),
  );
  if (out.length < MOST * losses.length) return null;
  if (hasTranslatedService(observed, address, losses)) return null;
  const nodes = new Set(out.flatMap(({ hops }) => hops.map((hop) => hop.client.address)));
  return {
    title: 'This node does not translate the DNS Service’s address to a pod',
    seen: `${out.length} of them left the node, from ${listed([...nodes])}, still addressed to ${address}, so no UDP rule sent them to a DNS pod.`,
    why: 'No machine has a Service’s address. Rules on each node (from kube-proxy or its replacement) translate it to a pod. Here they are missing for UDP, so the packets leave the node and are lost. Other nodes may be unaffected.',
    fix: [
      `Inspect this node’s rules for ${address} and UDP port 53, and its kube-proxy (or its replacement): iptables-save | grep ${address} (nft list ruleset, ipvsadm -Ln); kubectl -n kube-system get pods -o wide -l k8s-app=kube-proxy, and its log. A restart of kube-proxy writes the rules again.`,
    ],
  };
}

/** True if these clients also query another address, which the node translates to DNS pods. */
function hasTranslatedService(
  { backends, servers }: Observations,
  address: string,
  losses: readonly SeenExchange[],
): boolean {
  const services = new Set(backends.list.flatMap((pod) => [...pod.services]));
  services.delete(address);
  return losses.some(({ client }) =>
    [...services].some((service) => servers.get(service)?.clients.has(client.address) === true),
  );
}

/** Queries of DNS pods that pass the node with the address of the pod. */
function unmasked(
  observed: Observations,
  address: string,
  losses: readonly SeenExchange[],
): SilentCause | null {
  const routed = losses.filter(
    ({ client, hops, routed: isRouted }) =>
      isRouted === true && hops.length === 0 && isServer(observed, client.address),
  );
  const pods = keysOf(routed, ({ client }) => client.address);
  if (routed.length < NEARLY_ALL * losses.length || !pods.every(isPrivate)) return null;
  if (pods.every((pod) => isAnsweredUnmasked(observed, pod))) return null;
  return {
    title: 'Replies do not come back because queries leave the node without source NAT',
    seen: `${share(routed.length, losses.length)} of them were routed on by the node and still had a pod’s address as their source (${listed(pods)}).`,
    why: `The node does not masquerade them. The network of ${address} has a route back to nodes but most likely none to pods, so its replies do not arrive. (In networks that route pod addresses, this is normal, and the server or a firewall drops them.)`,
    fix: [
      `Inspect the node’s source NAT rules: iptables-save -t nat | grep -e MASQUERADE -e ip-masq (nft list table ip nat), the ip-masq-agent and its nonMasqueradeCIDRs, and the masquerade setting of the CNI. ${address} must not be among the excluded networks.`,
      `Or give the network of ${address} a route to the pod network.`,
    ],
  };
}

/** True if another server answers a DNS pod's queries that left the node with the pod's own address. */
function isAnsweredUnmasked({ clients }: Observations, pod: string): boolean {
  const servers = clients.get(pod)?.servers ?? new Map<string, Asked>();
  return [...servers].some(([address, { routed }]) => routed > 0 && address !== pod);
}

/** A sentence about the names that were lost: their zone, or the search domain that made them; null: of several zones. */
export function lostZoneText(
  observed: Observations,
  losses: readonly SeenExchange[],
): string | null {
  const names = keysOf(losses, ({ name }) => name).filter((name) => name !== '.');
  if (names.length === 0) return null;
  const domain = [...observed.domains.all].find(
    (each) => names.filter(makes(each, observed)).length >= NEARLY_ALL * names.length,
  );
  if (domain !== undefined && !observed.domains.isOfCluster(domain))
    return sentence(
      `These are search-path queries: the search domain ${domain} is appended to other names (${listed(names)}). Each lookup of an external name waits there before it gets to the name as written`,
    );
  const zone = names.length === 1 ? names[0]! : names.reduce(commonZone);
  if (zone.split('.').length < ZONE_LABELS) return null;
  const elsewhere = observed.servers.list.some(
    ({ address, outcomes }) =>
      answered(outcomes) > 0 && !losses.some(({ server }) => server.address === address),
  );
  if (!elsewhere) return null;
  return sentence(`All of them are for ${names.length === 1 ? '' : 'names under '}${zone}`);
}

/** A sentence with the evidence that this server’s process hangs; null if there is none. */
export function hungText(
  { connections, servers, backends, lastMs }: Observations,
  address: string,
): string | null {
  const view = backends.get(address) ?? servers.get(address);
  if (view === undefined || answered(view.outcomes) > 0 || view.tcp.lost === 0) return null;
  const accepted = connections
    .at(lastMs)
    .reduce((sum, pair) => (pair.server === address ? sum + pair.accepted : sum), 0);
  if (accepted + view.tcp.lost < MIN_CASES || accepted === 0) return null;
  return `${accepted} TCP connections to port 53 of ${address} were accepted, and ${view.tcp.lost} queries over them got no reply either, so its kernel works and is reachable, but its process does not read queries.`;
}
