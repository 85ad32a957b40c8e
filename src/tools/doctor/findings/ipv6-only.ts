/** IPv6-only pods that look up names with only IPv4 addresses. */
import { TYPE } from '../../../server/wire/iana.ts';
import { isServer } from '../observe/roles.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import { listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { MIN_PREFIX_NAMES } from '../thresholds/answers.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** Clients that query only AAAA get NODATA for external names. */
export const ipv6Only: FindingKind = {
  code: 'ND8011',
  title: 'IPv6-only pods look up names that have no IPv6 address, and DNS64 is missing',
  name: 'IPv6-only pods without DNS64',
  inCapture(observed, claims) {
    const { names, domains } = observed;
    const views = names.list.filter(
      ({ name, type, outcomes }) =>
        type === TYPE.AAAA && outcomes.asked > 0 && !domains.isOfCluster(name),
    );
    if (views.length === 0) return unknown('no external name was queried for AAAA');
    const empty = views.filter(({ name, outcomes: { found, nodata }, lastClients }) => {
      const isAlone = names.get(name, TYPE.A) === undefined && !claims.names.has(name);
      return isAlone && found === 0 && nodata > 0 && lastClients.every(isIpv6);
    });
    const count = empty.reduce((sum, { outcomes }) => sum + outcomes.nodata, 0);
    const wanted = [...new Set(empty.map(({ name }) => name))];
    if (count < MIN_CASES || wanted.length < MIN_PREFIX_NAMES)
      return excluded('names without an IPv6 address are queried for IPv4 as well');
    const all = [...new Set(empty.flatMap(({ lastClients }) => lastClients))];
    const pods = all.filter((client) => !isServer(observed, client));
    const clients = pods.length > 0 ? pods : all;
    const servers = [...serversOfNames(empty)];
    for (const name of wanted) claims.names.add(name);
    return {
      severity: 'critical',
      confidence: 0.85,
      seen: [
        `${listed(clients)} queried only AAAA and got ${count} answers without an address from ${listed(servers)} for ${listed(wanted)}`,
        'No A query was sent for these names, so the pods appear to have no IPv4 address.',
      ],
      why: 'A resolver on a host without IPv4 queries only AAAA, so names that have only IPv4 addresses do not resolve. In an IPv6-only network, the DNS server has to create IPv6 addresses for them (DNS64), and a NAT64 gateway translates the connections.',
      fix: [
        'If the network has a NAT64 gateway for 64:ff9b::/96, add dns64 64:ff9b::/96 to the Corefile.',
        'Otherwise give the pods an IPv4 address (dual stack), or send their traffic through a proxy that has one.',
      ],
      prove: `run ndots query ${wanted[0]!} A, then the same for AAAA; only A returns an address`,
      disproved: 'these names have no IPv4 address either',
      affected: clients,
    };
  },
};

function isIpv6(address: string): boolean {
  return address.includes(':');
}
