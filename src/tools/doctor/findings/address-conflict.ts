/** An address that two hosts use. */
import { takeSilence } from '../observe/consequences.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { isLinkLocal } from '../observe/roles.ts';
import { listed, share } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const addressConflict: FindingKind = {
  code: 'ND3027',
  title: 'Two hosts use the same address, so packets reach one or the other',
  name: 'an address conflict',
  inCapture(observed, claims) {
    if (observed.claimedAddresses.size === 0)
      return unknown('the capture has no ARP packets (capture all packets, not only port 53)');
    const isPeer = ({ client, server, hops }: SeenExchange, address: string): boolean =>
      [client, server, ...hops.map((hop) => hop.server)].some((peer) => peer.address === address);
    const [hit] = observed.claimedAddresses.conflicts
      .map((conflict) => ({
        ...conflict,
        losses: claims.open.filter((loss) => isPeer(loss, conflict.address)),
      }))
      // Each node has its cache’s address, and claims it on the link of each of its pods.
      .filter(({ address, losses }) => !isLinkLocal(address) && losses.length >= MIN_CASES)
      .toSorted((one, other) => other.losses.length - one.losses.length);
    if (hit === undefined)
      return excluded('no address of a client or server with losses is claimed by two hosts');
    const { address, hardware, changes, losses } = hit;
    takeSilence(observed, claims, losses);
    // Those that it received, also behind another address, and those that it sent, as the losses are.
    const asked = [observed.servers, observed.backends, observed.clients].reduce(
      (sum, views) => sum + (views.get(address)?.outcomes.asked ?? 0),
      0,
    );
    const errors = observed.rejections.filter(({ target }) => target === address).length;
    return {
      subject: address,
      severity: 'critical',
      confidence: 0.95,
      seen: [
        `${hardware.length} hardware addresses claim ${address} (ARP or neighbour discovery): ${listed(hardware)}. The claim changed ${changes} times.`,
        `${share(losses.length, asked)} queries ${directionText(address, losses)} ${address} got no reply.`,
        errors > 0 &&
          `${errors} ${errors === 1 ? 'query was' : 'queries were'} rejected with an ICMP port unreachable, so one of the hosts with this address is not a DNS server.`,
      ],
      why: `Two hosts on this network use the address ${address}. Neighbours send packets to the one that answered last, so queries or replies reach the wrong host until the next ARP reply.`,
      fix: [
        `Find the hosts with the hardware addresses ${listed(hardware)} (ip neigh, the switch’s MAC table, the hypervisor’s inventory), and give one of them a different address.`,
        'Exclude the address from DHCP ranges and from pod and load balancer pools on this network.',
      ],
      prove: `on this network, arping -c 5 ${address} (or arping -D -I INTERFACE ${address}) gets replies from two hardware addresses`,
      disproved:
        'both hardware addresses belong to one host that answers ARP on each of its interfaces',
      exchanges: losses,
    };
  },
};

function directionText(address: string, losses: readonly SeenExchange[]): string {
  const own = losses.filter(({ client }) => client.address === address).length;
  return own === 0 ? 'to' : own === losses.length ? 'from' : 'to or from';
}
