/** Pods with IPv6 only, and names that have IPv4 addresses only. */
import { TYPE } from '../../../server/wire/iana.ts';
import { isServer } from '../observe/roles.ts';
import { listed, sentence } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { MIN_PREFIX_NAMES } from '../thresholds/answers.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** Clients that ask for AAAA only get NODATA for external names. */
export const ipv6Only: FindingKind = {
  code: 'ND8011',
  title: 'Pods with IPv6 only ask for names that have no IPv6 address, and DNS64 is missing',
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
    const servers = [...new Set(empty.flatMap((view) => [...view.servers].map(([each]) => each)))];
    for (const name of wanted) claims.names.add(name);
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: 0.85,
      seen: [
        sentence(
          `${listed(clients)} asked for AAAA only and got ${count} answers without an address from ${listed(servers)}: ${listed(wanted)}`,
        ),
        'No query for A was sent for these names: the pods have no IPv4 address.',
      ],
      why: 'A resolver on a host without IPv4 asks for AAAA only. Names that have only IPv4 addresses are then "no address". In an IPv6-only network the DNS server makes IPv6 addresses of them (DNS64), which a NAT64 gateway takes.',
      fix: [
        'Add dns64 to the Corefile (dns64 64:ff9b::/96), if the network has a NAT64 gateway for that prefix.',
        'Otherwise give the pods an IPv4 address (dual stack), or send them through a proxy that has one.',
      ],
      prove: `ndots query ${wanted[0]!} A, and the same for AAAA: only A has an address`,
      disproved: 'these names have no IPv4 address either',
      exchanges: [],
      affected: clients,
    };
  },
};

function isIpv6(address: string): boolean {
  return address.includes(':');
}
