/** The cache of the node is gone, and its address and rules are still there. */
import { CLOSED } from '../observe/icmp-errors.ts';
import { isLinkLocal } from '../observe/roles.ts';
import { answered } from '../observe/outcomes.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { clock, listed, share } from '../texts.ts';
import { NODE_CACHE_SILENT_MS } from '../thresholds/silence.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/** The cache on the node is gone, and its address and rules are still there. */
export const nodeCacheDark: FindingKind = {
  code: 'ND3006',
  title: 'The node-local cache does not answer, and nothing takes its place',
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
    if (dark === undefined) return excluded('the cache on the node answers');
    const { address, outcomes, lastReplyMs } = dark;
    const losses = claims.openTo(address).filter(({ sentMs }) => sentMs > lastReplyMs);
    if (losses.length < MIN_CASES) return excluded('the cache on the node answers');
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
      code: this.code,
      title: isReplaced
        ? 'The node-local cache does not answer, and lookups wait before they ask the next server'
        : this.title,
      severity: 'critical',
      confidence: isClosed ? 0.95 : 0.8,
      seen: [
        answered(outcomes) === 0
          ? `${outcomes.asked} queries went to ${address}, and none was answered.`
          : `${address} answered until ${clock(lastReplyMs)}; of the later queries, ${share(losses.length, losses.length)} got no reply.`,
        ...(isReplaced
          ? [
              `The same clients then ask ${listed(others.map((each) => each.address))}, which answers; ${share(observed.slowLookups, observed.lookups)} lookups took a second or more.`,
            ]
          : []),
        ...(!isClosed
          ? [
              'No ICMP port unreachable came back: something may still be listening there but not answering in time.',
            ]
          : [
              `The kernel said ${refused.count} times that the port is closed (ICMP port unreachable).`,
            ]),
      ],
      why: !isClosed
        ? 'Queries reach no working cache, but this capture does not show why. The process may hang, or wait for its own upstream longer than its clients do: a cache that forwards to the cluster’s DNS over TCP (force_tcp) waits for 30 s where TCP port 53 is blocked. Or its process was killed while the rules that keep DNS packets out of connection tracking stayed.'
        : 'The cache on the node is an address on a dummy interface and rules that keep DNS packets out of connection tracking. Both stay when its process is killed (out of memory, SIGKILL): packets for that address find no listener, but are not sent to the cluster’s DNS either.',
      fix: [
        ...(isClosed
          ? []
          : [
              `Capture on the node (ndots doctor -i any) to see whether the cache queries its upstream, over UDP or TCP, and gets replies. Query the cluster’s DNS from the node over both: ndots query kubernetes.default.svc.cluster.local @DNS-SERVICE, and with +tcp.`,
            ]),
        'On the node, restart the cache, or remove its interface and its rules (ip link del nodelocaldns; iptables-save | grep NOTRACK) so that pods reach the cluster’s DNS directly.',
        'Give the cache a memory limit that it does not reach, and a priority class (system-node-critical).',
      ],
      prove: `On the node: ip addr show | grep ${address}; ss -lnup sport = :53`,
      disproved: `a process on the node listens on ${address}:53 (ss -lnup), or queries from other pods on the same node are answered`,
      exchanges: losses,
    };
  },
};
