/** IPv6 addresses that DNS64 creates from IPv4 addresses (RFC 6147), and that are unreachable without NAT64. */
import { netHolds, parseAddress, parseNet } from '../../../server/base/ip.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import { contactsWithin, isFailing } from '../observe/contacts-within.ts';
import { isWellKnown, synthesisOf } from '../observe/dns64.ts';
import type { NameView } from '../observe/name-view.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import { listed, share } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { MIN_PREFIX_NAMES } from '../thresholds/answers.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const deadNat64: FindingKind = {
  code: 'ND4046',
  title:
    'DNS64 creates IPv6 addresses from IPv4 ones, but no NAT64 gateway accepts connections to them',
  name: 'DNS64 without NAT64',
  inCapture(observed, claims) {
    const aaaa = observed.names.list.filter(
      ({ type, outcomes }) => type === TYPE.AAAA && outcomes.found > 0,
    );
    if (aaaa.length === 0) return unknown('no answer contained an IPv6 address');
    const made = aaaa
      .flatMap((view) => synthesisOf(view, observed) ?? [])
      // A name’s owner may have chosen such an address.
      .filter(({ prefix, view }) => isWellKnown(prefix) || isMissingElsewhere(view));
    const byPrefix = [...Map.groupBy(made, ({ prefix }) => prefix)]
      .filter(
        ([prefix, all]) =>
          isWellKnown(prefix) || new Set(all.map(({ name }) => name)).size >= MIN_PREFIX_NAMES,
      )
      .toSorted(([, one], [, other]) => other.length - one.length);
    const [first] = byPrefix;
    if (first === undefined) return excluded('no IPv6 address contains the name’s IPv4 address');
    const [prefix, all] = first;
    const head = parseNet(prefix)!;
    const sum = contactsWithin(observed, (server) => {
      const bytes = parseAddress(server);
      return bytes !== null && netHolds(head, bytes);
    });
    const isDead = isFailing(sum) && sum.accepted === 0;
    if (!isDead && sum.accepted > 0)
      return excluded(`connections to ${prefix} succeed, so NAT64 works`);
    const names = [...new Set(all.map(({ name }) => name))];
    const { address, ipv4, name } = all[0]!;
    const views = all.map(({ view }) => view);
    const makers = [...serversOfNames(views, ({ found }) => found > 0)];
    const sources = [...serversOfNames(views, ({ nodata }) => nodata > 0)].filter(
      (server) => !makers.includes(server),
    );
    const clients = [...sum.clients.keys()];
    const madeText = `${listed(makers)} answered AAAA queries with addresses in ${prefix} that contain the IPv4 addresses of the same names. For example, ${name} has ${ipv4} and ${address}.${sources.length > 0 ? ` ${listed(sources)} replied that there is no AAAA record.` : ''} This affects ${listed(names)}`;
    if (!isDead)
      return {
        title: 'A DNS server creates IPv6 addresses from IPv4 ones (DNS64), which requires NAT64',
        severity: 'info',
        confidence: 0.9,
        seen: [
          madeText,
          'The capture contains no connections to these addresses, so it does not show whether NAT64 works.',
        ],
        why: 'DNS64 answers AAAA queries for names that have only A records. Clients with IPv6 prefer these addresses, and a NAT64 gateway has to translate their connections. Without one, each connection times out before the program falls back to IPv4.',
        fix: [`If there is no NAT64 gateway for ${prefix}, remove dns64 from the configuration.`],
        prove: `in a pod with IPv6: nc -vz -w 3 ${address} 443`,
        disproved: 'connections to these addresses open',
        affected: makers,
      };
    for (const { server } of sum.failing) claims.addresses.add(server);
    return {
      severity: 'critical',
      confidence: 0.95,
      seen: [
        madeText,
        `${share(sum.failed, sum.opened)} connections to these addresses failed (from ${listed(clients)}), and none was accepted.`,
      ],
      why: `DNS64 is enabled in ${listed(makers)}, so names that have only A records get AAAA records in ${prefix}. Pods with an IPv6 address try these first, but no NAT64 gateway accepts the connections. Each one times out before the program falls back to IPv4. Pods without IPv6 are not affected.`,
      fix: [
        'Remove dns64 from the Corefile (or from the upstream resolver) if the cluster has no NAT64.',
        `Otherwise, repair NAT64: check the route to ${prefix} and the gateway (Jool, tayga, the provider’s NAT gateway).`,
        'Until then, remove the pods’ IPv6 address or default route.',
      ],
      prove: `in the pod: nc -vz -w 3 ${address} ${sum.failing[0]!.port}, and the same with ${ipv4}`,
      disproved: `a connection to ${address} opens, or the zone itself has this AAAA record`,
      affected: clients,
      counted: sum.clients,
    };
  },
};

/** False if all servers have the address, because it is then a record in the zone itself. */
function isMissingElsewhere({ outcomes, servers }: NameView): boolean {
  return servers.size === 1 || outcomes.nodata >= Math.min(MIN_CASES, outcomes.found);
}
