/** An address that two hosts have. */
import { takeSilence } from '../observe/consequences.ts';
import type { Observations } from '../observe/observations.ts';
import { listed, share } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** Two hardware addresses answer for the address of a server or a client that loses queries. */
export const addressConflict: FindingKind = {
  code: 'ND3027',
  title: 'Two hosts have the same address, and packets go to one or the other',
  name: 'an address conflict',
  inCapture(observed, claims) {
    if (observed.claimedAddresses.size === 0)
      return unknown('the capture has no ARP packets (capture all packets, not only port 53)');
    const hit = observed.claimedAddresses.conflicts
      .map((conflict) => {
        const { address } = conflict;
        const losses = claims.open.filter(({ client, server, hops }) =>
          [client, server, ...hops.map((hop) => hop.server)].some(
            (peer) => peer.address === address,
          ),
        );
        return { ...conflict, losses };
      })
      .filter(({ losses }) => losses.length >= MIN_CASES)
      .toSorted((one, other) => other.losses.length - one.losses.length)[0];
    if (hit === undefined)
      return excluded('no address of a client or server with losses is claimed by two hosts');
    const { address, hardware, changes, losses } = hit;
    takeSilence(observed, claims, losses);
    const errors = observed.rejections.filter(({ target }) => target === address).length;
    return {
      code: this.code,
      title: this.title,
      subject: address,
      severity: 'critical',
      confidence: 0.95,
      seen: [
        `${address} is claimed by ${hardware.length} hardware addresses (ARP, neighbour discovery), ${listed(hardware)}, which changed ${changes} times.`,
        `${share(losses.length, askedOf(observed, address))} queries ${observed.clients.get(address) === undefined ? 'to' : 'of'} ${address} got no reply.`,
        ...(errors > 0
          ? [
              `${errors} came back as port unreachable (ICMP): one of the hosts with this address is not a DNS server.`,
            ]
          : []),
      ],
      why: `Two hosts on this network have the address ${address}. Neighbours send packets to the one that answered last, so queries or replies reach the wrong host until the next ARP answer.`,
      fix: [
        `Find the hosts with the hardware addresses ${listed(hardware)} (ip neigh, the switch’s MAC table, the hypervisor’s list), and give one of them another address.`,
        'Exclude the address from DHCP ranges and from the pod or load balancer pools on this network.',
      ],
      prove: `on this network: arping -D -I INTERFACE ${address}, or arping -c 5 ${address}: replies come from two hardware addresses`,
      disproved:
        'both hardware addresses belong to one host, which answers ARP on each of its interfaces',
      exchanges: losses,
    };
  },
};

function askedOf({ servers, backends, clients }: Observations, address: string): number {
  const view = servers.get(address) ?? backends.get(address) ?? clients.get(address);
  return view?.outcomes.asked ?? 0;
}
