/** Resolvers that receive queries for cluster names although they do not know the cluster. */
import type { ClientView } from '../observe/client-view.ts';
import type { Observations } from '../observe/observations.ts';
import { isOutside } from '../observe/outside-address.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { askedForCluster, isServer } from '../observe/roles.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, share } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/** The root denies cluster names, so the resolver queried the internet instead of the cluster. */
export const foreignResolver: FindingKind = {
  code: 'ND2007',
  title: 'Some pods query servers other than the cluster’s DNS',
  name: 'pods that query other servers',
  inCapture(observed, claims) {
    const { names, domains, replyFaults } = observed;
    const { found: knowing } = askedForCluster(observed);
    const ofRoot = replyFaults.rootDenials.list.filter(
      ({ name, server }) =>
        domains.isOfCluster(name) && !claims.names.has(name) && !knowing.has(server),
    );
    const ofPublic = ofRoot.length > 0 ? [] : deniedOutside(observed, knowing);
    const denials =
      ofRoot.length > 0 ? ofRoot : ofPublic.length > 0 ? ofPublic : deniedWithoutPath(observed);
    const strangers = [...Map.groupBy(denials, ({ server }) => server)].flatMap(([server, all]) =>
      all.reduce((sum, { count }) => sum + count, 0) >= MIN_CASES ? server : [],
    );
    const askers = askersOf(observed, strangers);
    if (askers.length === 0)
      return names.list.some(({ name }) => domains.isOfCluster(name))
        ? excluded('no server denies cluster names with the root’s SOA record')
        : unknown('no cluster name was queried');
    const both = withBoth(observed, askers, knowing);
    // A DNS server may forward cluster names to the internet, which is another finding.
    if (both.length === 0 && ofPublic.length > 0)
      return unknown('no client queries another resolver beside the cluster’s DNS');
    // Other servers in the capture know these names, which is the other finding with this code.
    if (both.length === 0 && knowing.size > 0)
      return unknown('other clients query a server that knows the names');
    const missing = missingNames(observed, denials);
    const ours = [...new Set(both.flatMap(({ servers }) => [...servers.keys()]))].filter(
      (at) => !strangers.includes(at),
    );
    for (const { name } of names.list) if (domains.isOfCluster(name)) claims.names.add(name);
    const denied = denials.reduce((sum, { count }) => sum + count, 0);
    const asked = strangers.reduce(
      (sum, at) => sum + (observed.servers.get(at)?.outcomes.asked ?? 0),
      0,
    );
    return {
      title:
        both.length > 0
          ? 'Pods also query a second name server that does not know the cluster'
          : this.title,
      severity: 'critical',
      confidence: ofRoot.length > 0 ? 0.95 : ofPublic.length > 0 ? 0.94 : 0.85,
      seen: [
        ofRoot.length > 0
          ? `${share(denied, asked)} queries to ${listed(strangers)} were for cluster names and were denied with the root’s SOA record, so that server resolves internet names, not cluster names.`
          : ofPublic.length > 0
            ? `${share(denied, asked)} queries to ${listed(strangers)} were for cluster names that exist and got NXDOMAIN. ${strangerText(observed, strangers)}`
            : `${share(denied, asked)} queries to ${listed(strangers)} were for cluster names and got NXDOMAIN. The search path of these clients (${listed([...domains.all])}) has no cluster domain, as in a node’s resolv.conf.`,
        `The denied names include ${listed(missing)}`,
        both.length > 0
          ? `${listed(both.map(({ address }) => address))} also ${both.length === 1 ? 'queries' : 'query'} ${listed(ours)}, which ${ours.length === 1 ? 'knows' : 'know'} cluster names.`
          : `No query from ${listed(askers.map(({ address }) => address))} went to a server that knows cluster names.`,
      ],
      why: both.length > 0 ? ofSecondServer : ofOtherServer,
      fix:
        both.length > 0
          ? [
              `Remove ${listed(strangers)} (and options rotate) from these pods’ dnsConfig or resolv.conf. Leave only the cluster’s DNS, which forwards everything else.`,
            ]
          : [
              'Set dnsPolicy: ClusterFirst (ClusterFirstWithHostNet for pods with hostNetwork), and remove nameservers from these pods’ dnsConfig.',
            ],
      prove: `run kubectl exec POD -- cat /etc/resolv.conf, then ndots query ${missing[0]!} @${strangers[0]!}`,
      disproved: 'the resolv.conf in these pods lists only the cluster’s DNS',
      exchanges: observed.affectedExchanges(({ server }) => strangers.includes(server.address)),
      affected: askers.map(({ address }) => address),
    };
  },
};

const ofSecondServer =
  'The resolv.conf of these pods has a second nameserver, and perhaps options rotate. A resolver treats NXDOMAIN from any server as final and does not query the next one. musl (Alpine) queries all servers at once and takes the first reply, whichever server sends it. Every server in resolv.conf has to know the same names.';
const ofOtherServer =
  'These pods have dnsPolicy Default, hostNetwork without ClusterFirstWithHostNet, or nameservers of their own in dnsConfig. They query the node’s or another resolver, which does not know Service names. The cluster’s DNS is not at fault.';

/** The clients whose lookups fail at these servers. If none fails, all clients that query them. */
function askersOf(observed: Observations, strangers: readonly string[]): readonly ClientView[] {
  const isAtStranger = ({ name, server }: SeenExchange): boolean =>
    observed.domains.isOfCluster(name) && strangers.includes(server.address);
  const failing = new Set(
    observed.affected.flatMap(({ client, exchanges }) =>
      exchanges.some(isAtStranger) ? client : [],
    ),
  );
  // If a client queries all servers at once, one of them may find what the stranger denied first.
  const asking =
    failing.size > 0
      ? failing
      : new Set(strangers.flatMap((at) => [...(observed.servers.get(at)?.clients ?? [])]));
  return observed.clients.list.filter(
    ({ address }) => !isServer(observed, address) && asking.has(address),
  );
}

/** The clients that also query a server that knows the cluster. Behind a Service are servers whose addresses they do not know. */
function withBoth(
  { servers, backends }: Observations,
  askers: readonly ClientView[],
  knowing: ReadonlySet<string>,
): readonly ClientView[] {
  return askers.filter(({ address }) =>
    [...knowing].some((at) => [servers, backends].some((all) => all.get(at)?.clients.has(address))),
  );
}

/** The denied names. Those that another server finds are first. */
function missingNames({ names }: Observations, denials: readonly Denial[]): readonly string[] {
  // Names that another server finds show the fault, while no server has those of the search path.
  const isFound = (name: string): boolean =>
    names.list.some((view) => view.name === name && view.outcomes.found > 0);
  return [...new Set(denials.map(({ name }) => name))].toSorted(
    (one, other) => Number(isFound(other)) - Number(isFound(one)),
  );
}

/** The number of times that a server denied a name. */
interface Denial {
  readonly server: string;
  readonly name: string;
  readonly count: number;
}

/** Denials of cluster names by servers that find external names, for clients without a search domain of the cluster. */
function deniedWithoutPath({ names: { list }, domains }: Observations): readonly Denial[] {
  const all = [...domains.all];
  if (all.length === 0 || all.some((domain) => domains.isOfCluster(domain))) return [];
  const finding = serversOfNames(
    list.filter(({ name }) => !domains.isOfCluster(name)),
    ({ found }) => found > 0,
  );
  return list.flatMap(({ name, servers }) =>
    [...servers].flatMap(([server, { nxdomain: count, found }]) =>
      domains.isOfCluster(name) && count > 0 && found === 0 && finding.has(server)
        ? { server, name, count }
        : [],
    ),
  );
}

/**
 * Denials of cluster names that exist, by servers that find none. These are public ones, and those whose denials lack the
 * SOA record that DNS pods add.
 */
function deniedOutside(observed: Observations, knowing: ReadonlySet<string>): readonly Denial[] {
  const { names, domains } = observed;
  return names.list.flatMap(({ name, servers, outcomes, negativeTtls }) =>
    domains.isOfCluster(name) && outcomes.found > 0
      ? [...servers].flatMap(([server, { nxdomain: count }]) =>
          count > 0 &&
          !knowing.has(server) &&
          (isOutside(observed, server) || !negativeTtls.some((each) => each.server === server))
            ? { server, name, count }
            : [],
        )
      : [],
  );
}

function strangerText(observed: Observations, strangers: readonly string[]): string {
  if (!strangers.every((address) => isOutside(observed, address)))
    return 'The replies lack the SOA record of the cluster’s zone, which a DNS pod of the cluster adds.';
  return `${strangers.length === 1 ? 'This is a public address' : 'These are public addresses'}, so no DNS pod of the cluster answers there.`;
}
