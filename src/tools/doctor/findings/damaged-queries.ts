/** Queries that arrive with a wrong UDP checksum, which the kernel of the server drops. */
import { finalServer } from '../../capture/pair/seen-exchange.ts';
import { takeSilence } from '../observe/consequences.ts';
import { listed, share } from '../texts.ts';
import { MIN_CASES, NEARLY_ALL } from '../thresholds/evidence.ts';
import { excluded, type FindingKind } from './finding.ts';

/** (Nearly) all losses at a server have a wrong checksum, and no query with one is answered. */
export const damagedQueries: FindingKind = {
  code: 'ND3046',
  title: 'Queries arrive with a wrong UDP checksum, and the kernel drops them',
  name: 'queries with a wrong checksum',
  inCapture(observed, claims) {
    const damaged = claims.open.filter(({ damagedQuery }) => damagedQuery === true);
    for (const [address, losses] of Map.groupBy(damaged, (loss) => finalServer(loss).address)) {
      const all = claims.open.filter((loss) => finalServer(loss).address === address);
      // A capture may show checksums that are computed later: such queries are answered.
      const answered = observed.answeredDamaged.get(address)?.count ?? 0;
      if (losses.length < MIN_CASES || losses.length < NEARLY_ALL * all.length) continue;
      if (losses.length < NEARLY_ALL * (losses.length + answered)) continue;
      takeSilence(observed, claims, all);
      const clients = listed(losses.map(({ client }) => client.address));
      return {
        subject: address,
        severity: 'critical',
        confidence: 0.95,
        seen: [
          `${share(losses.length, all.length)} unanswered queries to ${address} have a UDP checksum that does not match their bytes. They came from ${clients}.`,
          answered === 0
            ? `No query with a wrong checksum was answered by ${address}.`
            : `${share(answered, losses.length + answered)} queries with a wrong checksum were answered.`,
        ],
        why: `The queries reach ${address}, but its kernel silently drops packets with a wrong checksum, so the DNS server never gets them. Something on the way changed these packets without correcting the checksum. It may be broken checksum offload in a network card, driver or overlay network (often VXLAN), or a rule that rewrites addresses. Queries that take another path, such as to a DNS pod on the client’s own node, are not affected. (Checksums that a sender leaves to its network card are not counted.)`,
        fix: [
          `Turn the offload off on the nodes of ${clients} with ethtool -K IFACE tx-checksum-ip-generic off, also on the overlay interface (flannel.1, vxlan.calico). If that helps, update the kernel or driver.`,
          `Capture on both sides of each node between ${clients} and ${address} to find where the checksum becomes wrong (tcpdump -vv prints "bad udp cksum").`,
        ],
        prove: `nstat -az UdpInCsumErrors Udp6InCsumErrors rises in the network namespace of ${address}`,
        disproved:
          'the counter stays at zero (then the packets were changed by or after the capture)',
        exchanges: losses,
      };
    }
    return excluded('no unanswered queries have a wrong checksum');
  },
};
