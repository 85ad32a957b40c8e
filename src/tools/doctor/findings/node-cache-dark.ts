/** Node-local caches that are gone while their address and rules remain. */
import { CLOSED } from '../observe/icmp-errors.ts';
import { isLinkLocal } from '../observe/roles.ts';
import { answered } from '../observe/outcomes.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { clock, listed, share } from '../texts.ts';
import { NODE_CACHE_SILENT_MS } from '../thresholds/silence.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

export const nodeCacheDark: FindingKind = {
  code: 'ND3006',
  title: 'The node-local cache does not answer, and no other server takes over',
  name: 'a dead node-local cache',
  inCapture(observed, claims) {
    const local = observed.servers.list.filter(({ address }) => isLinkLocal(address));
    if (local.length === 0) return unknown('no query to a link-local address was seen');
    const dark = local.find(({ outcomes, lastReplyMs, lastMs }) => {
      const silentMs = lastMs - Math.max(lastReplyMs, -Infinity);
      return (
        outcomes.lost >= MIN_CASES && (answered(outcomes) === 0 || silentMs > NODE_CACHE_SILENT_MS)
      );
    });
    if (dark === undefined) return excluded('the node-local cache answers');
    const { address, outcomes, lastReplyMs } = dark;
    const losses = claims.openTo(address).filter(({ sentMs }) => sentMs > lastReplyMs);
    if (losses.length < MIN_CASES) return excluded('the node-local cache answers');
    claims.take(losses);
    const refused = observed.unreachable.get(address);
    // The kernel rejects packets for a port without a listener.
    const isClosed = refused !== undefined && CLOSED.has(refused.code);
    const others = observed.servers.list.filter(
      (each) =>
        each.address !== address &&
        answered(each.outcomes) > 0 &&
        losses.some(({ client }) => each.clients.has(client.address)),
    );
    const isReplaced = others.length > 0 && observed.lookups > 0;
    return {
      title: isReplaced
        ? 'The node-local cache does not answer, so lookups wait before they try the next server'
        : this.title,
      severity: 'critical',
      confidence: isClosed ? 0.95 : 0.8,
      seen: [
        answered(outcomes) === 0
          ? `None of the ${outcomes.asked} queries to ${address} was answered.`
          : `${address} answered until ${clock(lastReplyMs)}. After that, ${share(losses.length, losses.length)} queries got no reply.`,
        isReplaced &&
          `The same clients then query ${listed(others.map((each) => each.address))} and get an answer, but ${share(observed.slowLookups, observed.lookups)} lookups took a second or more.`,
        !isClosed
          ? 'No ICMP port unreachable came back, so a process may still be listening there without answering in time.'
          : `The kernel reported ${refused.count} times that the port is closed (ICMP port unreachable).`,
      ],
      why: !isClosed
        ? 'Queries reach no working cache, but this capture does not show why. The process may hang, or wait for its own upstream longer than its clients do. (A cache that forwards over TCP with force_tcp waits for 30 s if TCP port 53 is blocked.) Or it was killed, but its NOTRACK rules remain.'
        : 'The node-local cache has an address on a dummy interface, and rules that keep DNS packets out of connection tracking. Both remain when its process is killed (out of memory, SIGKILL). Packets for that address then find no listener, but do not reach the cluster’s DNS either.',
      fix: [
        !isClosed &&
          `On the node, ndots doctor -i any shows whether the cache queries its upstream, over UDP or TCP, and gets replies. From the node, query the cluster’s DNS over both with ndots query kubernetes.default.svc.cluster.local @DNS-SERVICE, then the same with +tcp.`,
        'On the node, restart the cache, or remove its interface and its rules (ip link del nodelocaldns; iptables-save | grep NOTRACK) so that pods reach the cluster’s DNS directly.',
        'Give the cache a memory limit that it does not reach, and a priority class (system-node-critical).',
      ],
      prove: `on the node, run ip addr show | grep ${address} and ss -lnup sport = :53`,
      disproved: isClosed
        ? `a process on the node listens on ${address}:53 (ss -lnup), or queries from other pods on the same node are answered`
        : `queries to ${address} from other pods on the same node are answered`,
      exchanges: losses,
    };
  },
};
