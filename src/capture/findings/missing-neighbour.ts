import { excluded, listed, unknown, type Rule } from './finding.ts';
import { lossesTo } from './losses.ts';

/** Nobody says to have the server’s address on the local network. */
export const missingNeighbour: Rule = {
  code: 'ND3015',
  title: 'Packets are not even sent: nobody on the local network has the next address',
  name: 'the neighbour (ARP) table',
  check(observed, claims) {
    const overflow = observed.counters.get('neighbourOverflow') ?? 0;
    const silent = observed.neighbours.list.filter(
      ({ asked, answered }) => asked >= 3 && answered === 0,
    );
    if (observed.neighbours.size === 0 && overflow === 0) return unknown('the capture has no ARP');
    const servers = silent.filter(
      ({ address }) => observed.servers.get(address) ?? observed.backends.get(address),
    );
    if (overflow === 0 && servers.length === 0)
      return excluded('addresses of the local network are found');
    const addresses = servers.map(({ address }) => address);
    const losses = addresses.flatMap((address) => lossesTo(claims, address));
    claims.take(losses);
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: overflow > 0 ? 0.95 : 0.85,
      seen: [
        ...(addresses.length > 0
          ? [
              `${listed(addresses)}: asked for by ARP ${servers[0]!.asked} times, and nobody answered.`,
            ]
          : []),
        ...(overflow > 0
          ? [`The kernel says ${overflow} times that its neighbour table overflows.`]
          : []),
      ],
      why: 'Before a packet leaves on a local network its sender has to know the hardware address of the next host. The host is gone, or the kernel’s table of neighbours is full (many pods in one flat network) and forgets entries as fast as it learns them.',
      fix: [
        'sysctl -w net.ipv4.neigh.default.gc_thresh1=8192 gc_thresh2=32768 gc_thresh3=65536 on the nodes, if the kernel says that the table overflows.',
        'Else see whether the host still exists, and why its address is still an endpoint.',
      ],
      prove: 'ip neigh | wc -l; dmesg | grep -i "neighbo.r.*overflow"; arping ADDRESS',
      disproved: 'ip neigh shows the address as REACHABLE while queries get lost',
      exchanges: losses,
    };
  },
};
