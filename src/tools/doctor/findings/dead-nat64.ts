/** IPv6 addresses that DNS64 makes from IPv4 addresses (RFC 6147), and that lead nowhere without NAT64. */
import { netHolds, parseAddress, parseNet, printAddress } from '../../../server/base/ip.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import { contactsWithin, isFailing } from '../observe/contacts-within.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { listed, sentence, share } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { MIN_PREFIX_NAMES, NAT64_PREFIX as PREFIX } from '../thresholds/answers.ts';
import { excluded, unknown, type Finding, type FindingKind } from './finding.ts';

/** RFC 6052, and RFC 8215 for local use. */
const WELL_KNOWN = [parseNet('64:ff9b::/96')!, parseNet('64:ff9b:1::/48')!];

/** An AAAA answer with an IPv4 address in it. */
interface Synthesis {
  readonly name: string;
  readonly prefix: string;
  readonly address: string;
  readonly ipv4: string;
  readonly view: NameView;
}

/** DNS64 is on, and connections to its addresses fail. */
export const deadNat64: FindingKind = {
  code: 'ND4046',
  title: 'DNS64 makes IPv6 addresses of IPv4 ones, and no NAT64 takes the connections to them',
  name: 'DNS64 without NAT64',
  inCapture(observed, claims) {
    const aaaa = observed.names.list.filter(
      ({ type, outcomes }) => type === TYPE.AAAA && outcomes.found > 0,
    );
    if (aaaa.length === 0) return unknown('no IPv6 address was answered');
    const made = aaaa.flatMap((view) => synthesisOf(view, observed) ?? []);
    const byPrefix = [...Map.groupBy(made, ({ prefix }) => prefix)]
      .filter(
        ([prefix, all]) =>
          isWellKnown(prefix) || new Set(all.map(({ name }) => name)).size >= MIN_PREFIX_NAMES,
      )
      .toSorted(([, one], [, other]) => other.length - one.length);
    const [first] = byPrefix;
    if (first === undefined) return excluded('IPv6 addresses do not contain the IPv4 ones');
    const [prefix, all] = first;
    const head = parseNet(prefix)!;
    const sum = contactsWithin(observed, (server) => {
      const bytes = parseAddress(server);
      return bytes !== null && netHolds(head, bytes);
    });
    const isDead = isFailing(sum) && sum.accepted === 0;
    if (!isDead && sum.accepted > 0)
      return excluded(`connections to ${prefix} succeed: NAT64 works`);
    const names = [...new Set(all.map(({ name }) => name))];
    const { address, ipv4, name } = all[0]!;
    const makers = [...new Set(all.flatMap(({ view }) => serversWith(view, 'found')))];
    const sources = [...new Set(all.flatMap(({ view }) => serversWith(view, 'nodata')))].filter(
      (server) => !makers.includes(server),
    );
    const clients = [...sum.clients.keys()];
    if (isDead) for (const { server } of sum.failing) claims.addresses.add(server);
    const shown: Pick<Finding, 'seen' | 'prove'> = {
      seen: [
        sentence(
          `${listed(makers)} answered AAAA queries with addresses in ${prefix}, which hold the IPv4 addresses of the same names: ${name} has ${ipv4} and ${address}.${sources.length > 0 ? ` ${listed(sources)} said that there is no AAAA record.` : ''} Names: ${listed(names)}`,
        ),
        ...(isDead
          ? [
              `${share(sum.failed, sum.opened)} connections to these addresses failed (${listed(clients)}), and none was accepted.`,
            ]
          : [
              'The capture has no connection to these addresses that would show whether NAT64 works.',
            ]),
      ],
      prove: isDead
        ? `in the pod: nc -vz -w 3 ${address} ${sum.failing[0]!.port}, and the same with ${ipv4}`
        : `in a pod with IPv6: nc -vz -w 3 ${address} 443`,
    };
    const base = { code: this.code, exchanges: [], affected: isDead ? clients : makers };
    if (!isDead)
      return {
        ...{ ...base, ...shown, severity: 'info', confidence: 0.9 },
        title: 'A DNS server makes IPv6 addresses of IPv4 ones (DNS64), which only work with NAT64',
        why: 'DNS64 answers AAAA queries for names that have only A records. Clients with IPv6 prefer these addresses, and a NAT64 gateway has to take their connections. Without one, each connection waits for a time-out before it uses IPv4.',
        fix: [`If there is no NAT64 gateway for ${prefix}, remove dns64 from the configuration.`],
        disproved: 'connections to these addresses open',
      };
    return {
      ...{ ...base, ...shown, severity: 'critical', confidence: 0.95, title: this.title },
      counted: sum.clients,
      why: `DNS64 is switched on in ${listed(makers)}: for names that have only A records it makes AAAA records in ${prefix}. Pods with an IPv6 address try these first, but no NAT64 gateway takes the connections. Each waits for its time-out before the program uses IPv4. Pods without IPv6 notice nothing.`,
      fix: [
        'Remove dns64 from the Corefile (or from the upstream resolver) if the cluster has no NAT64.',
        `Otherwise, repair NAT64: the route to ${prefix}, and the gateway (Jool, tayga, the provider’s NAT gateway).`,
        'Until then, take the IPv6 address or default route from the pods.',
      ],
      disproved: `a connection to ${address} opens, or the zone itself has this AAAA record`,
    };
  },
};

function isWellKnown(prefix: string): boolean {
  return WELL_KNOWN.some((net) => netHolds(net, parseNet(prefix)!.bytes));
}

/** Null: no address of the name ends in one of its IPv4 addresses, nor has a well-known prefix. */
function synthesisOf(view: NameView, { names }: Observations): Synthesis | null {
  const { name } = view;
  const ipv4 = new Set(names.get(name, TYPE.A)?.addresses);
  for (const address of view.addresses) {
    const bytes = parseAddress(address);
    if (bytes?.length !== 16) continue;
    const tail = printAddress(bytes, PREFIX, 4);
    const prefix = `${printAddress(Uint8Array.from([...bytes.subarray(0, PREFIX), 0, 0, 0, 0]))}/96`;
    // One name may have such an address by choice of its owner.
    if (isWellKnown(prefix) || (ipv4.has(tail) && isMissingElsewhere(view)))
      return { ...{ name, prefix, address, view }, ipv4: tail };
  }
  return null;
}

/** True unless all servers have the address: then it is a record of its zone. */
function isMissingElsewhere({ outcomes, servers }: NameView): boolean {
  const count = [...servers].length;
  return count === 1 || outcomes.nodata >= Math.min(MIN_CASES, outcomes.found);
}

function serversWith({ servers }: NameView, what: 'found' | 'nodata'): readonly string[] {
  return [...servers].flatMap(([server, outcomes]) => (outcomes[what] > 0 ? server : []));
}
