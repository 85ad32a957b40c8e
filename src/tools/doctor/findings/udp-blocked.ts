/** A DNS pod whose UDP replies never come, while it answers over TCP. */
import type { Observations } from '../observe/observations.ts';
import { answered } from '../observe/outcomes.ts';
import { isSilent } from '../observe/sockets.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { fromTo, listed } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { UDP_BLOCKED } from '../thresholds/transport.ts';

export const udpBlocked: FindingKind = {
  code: 'ND3023',
  title: 'UDP port 53 to a DNS server is filtered, while TCP works',
  name: 'a filter for UDP port 53',
  inCapture(observed, claims) {
    if (!observed.connections.any) return unknown('no query over TCP was seen');
    const blocked = blockedServers(observed, claims);
    if (blocked.length === 0)
      return excluded('no server answers over TCP but leaves all UDP queries unanswered');
    const names = blocked.map(({ address }) => address);
    const direct = blocked.flatMap(({ losses }) => losses);
    const { fromMs, toMs } = sentSpan(direct);
    const clients = new Set(direct.map(({ client }) => client.address));
    // The address of the Service leads a part of the sockets to such a pod.
    const sockets = claims.open.filter((loss) => {
      const flow = observed.flows.get(loss);
      return clients.has(loss.client.address) && flow !== undefined && isSilent(flow);
    });
    const losses = [...new Set([...direct, ...sockets])];
    claims.take(losses);
    const accepted = blocked.reduce((sum, each) => sum + each.accepted, 0);
    return {
      severity: 'critical',
      confidence: 0.92,
      seen: [
        `${direct.length} queries to ${listed(names)} over UDP got no reply, ${fromTo(fromMs, toMs)}. During that time, ${accepted} TCP connections to port 53 there were accepted, and queries over them were answered.`,
        losses.length > direct.length &&
          `${losses.length - direct.length} more queries from the same clients got no reply, on sockets that never got one, because the address that they queried leads some sockets to such a pod.`,
      ],
      why: 'The server is up and reachable over TCP, so the server and the route work. Something in between drops UDP to port 53, such as a security group or firewall between nodes that allows only TCP, or a NetworkPolicy with protocol TCP but not UDP.',
      fix: [
        'Allow UDP and TCP port 53 between all nodes and pods, in the nodes’ security groups, in firewalls between subnets, and in NetworkPolicies.',
        'Until then, run a DNS pod on each node with internalTrafficPolicy: Local, or set use-vc in dnsConfig options (glibc then uses TCP).',
      ],
      prove: `on the client’s node, run dig @${names[0]} kubernetes.default.svc.cluster.local, then the same with +tcp; only the second is answered`,
      disproved: `${names[0]} answers a pod on another node over UDP`,
      exchanges: losses,
    };
  },
};

interface Blocked {
  readonly address: string;
  readonly losses: readonly SeenExchange[];
  readonly accepted: number;
}

function blockedServers(observed: Observations, claims: Claims): readonly Blocked[] {
  const { connections, servers, backends, lastMs } = observed;
  const byServer = Map.groupBy(connections.at(lastMs), ({ server }) => server);
  return [...byServer].flatMap(([address, pairs]) => {
    const view = backends.get(address) ?? servers.get(address);
    const accepted = pairs.reduce((sum, pair) => sum + pair.accepted, 0);
    if (view === undefined || accepted === 0) return [];
    // The kernel of a server that hangs still accepts connections.
    const byTcp = view.tcp.asked - view.tcp.lost;
    if (byTcp === 0) return [];
    const clients = new Set(pairs.map(({ client }) => client));
    const losses = claims.openTo(address).filter(({ protocol }) => protocol === 'udp');
    const isOfSome = losses.some(({ client }) => clients.has(client.address));
    const isSilentInUdp = answered(view.outcomes) === byTcp;
    if (!isOfSome || !isSilentInUdp) return [];
    // Few queries to its own address are enough where many sockets of the same clients get nothing.
    const silent = observed.flows.list.filter(
      (flow) => flow.server !== address && clients.has(flow.client) && isSilent(flow),
    );
    const least =
      silent.length >= UDP_BLOCKED.sockets ? UDP_BLOCKED.amidSilent : UDP_BLOCKED.queries;
    return losses.length >= least ? { address, losses, accepted } : [];
  });
}
