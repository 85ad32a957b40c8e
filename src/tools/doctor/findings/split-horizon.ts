/** Names that one server knows, and that the servers which the cluster’s DNS asks deny. */
import { absoluteName } from '../observe/absolute-name.ts';
import { isClusterName } from '../observe/domain-of-name.ts';
import type { NameView } from '../observe/name-view.ts';
import { isPrivate } from '../observe/private-address.ts';
import type { Observations } from '../observe/observations.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import { excluded, unknown, type FoundCause, type FindingKind } from './finding.ts';
import { listed, sentence } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { serveTheSame, upstreams } from '../observe/roles.ts';
import { MIN_FAILED_LOOKUPS, MIN_REPLIES_OF_KIND } from '../thresholds/search.ts';

interface Difference {
  readonly view: NameView;
  readonly having: readonly string[];
  readonly lacking: readonly string[];
}

const said: Pick<FoundCause, 'why' | 'disproved'> = {
  why: 'The zone has an internal version with private names and a public one. The cluster’s DNS forwards the zone to one of the two, whose NXDOMAIN is final, so the other is never queried. Names that exist only in the other version do not resolve in pods, but do on nodes or elsewhere.',
  disproved: 'both servers give the same answer when they are queried directly',
};

/** The root denied the name, so there is no public version to which the name could be added. */
function ofRoot(having: string): Pick<FoundCause, 'why' | 'fix'> {
  return {
    why: `The cluster’s DNS forwards these names to a resolver that looks them up on the internet, where their domain does not exist. Its NXDOMAIN is final, so ${having}, which knows the domain, is never queried.`,
    fix: [
      `Forward the domain of these names to ${having}, with a separate server block in the Corefile or a conditional forwarder in the upstream.`,
    ],
  };
}

function fixes(lacking: readonly string[], having: string): readonly string[] {
  return [
    `Add the missing names to the version that ${listed(lacking)} serves.`,
    `Or forward only the private part of the zone there, and the rest to ${having}, with a separate server block in the Corefile.`,
  ];
}

/** A zone has an internal and a public version, and the cluster asks the one without the name. */
export const splitHorizon: FindingKind = {
  code: 'ND4034',
  title: 'A name exists at one name server, but the one that the cluster queries denies it',
  name: 'two versions of a zone (split horizon)',
  inCapture(observed, claims) {
    const views = observed.names.list.filter(
      ({ name, servers }) =>
        servers.size >= 2 && !isClusterName(observed, name) && !claims.names.has(name),
    );
    const isOpen = views.length === 0;
    const found = views.flatMap((view) => difference(view, observed) ?? []);
    const [first] = found;
    if (first === undefined)
      return (
        oneSided(observed, claims) ??
        (isOpen
          ? unknown('no external name was queried at two servers')
          : excluded('servers agree about which external names exist'))
      );
    const names = [...new Set(found.map(({ view }) => view.name))];
    for (const name of names) claims.names.add(name);
    const behind = upstreams(observed);
    const { having } = first;
    const upstream = first.lacking.filter((server) => behind.has(server));
    const lacking = upstream.length > 0 ? upstream : first.lacking;
    const zone = observed.replyFaults.zones.get(names[0]!)?.zone ?? '';
    const denied = found.reduce((sum, { view }) => sum + view.outcomes.nxdomain, 0);
    const who = [
      ...new Set(having.flatMap((server) => [...(observed.servers.get(server)?.clients ?? [])])),
    ];
    return {
      ...said,
      severity: 'critical',
      confidence: 0.9,
      seen: [
        sentence(
          `${listed(names)}: ${listed(first.lacking)} said NXDOMAIN, ${denied} times and always; ${listed(having)} has ${names.length === 1 ? 'it' : 'them'}, and never denied ${names.length === 1 ? 'it' : 'them'}`,
        ),
        zone === '.' &&
          'The denial carries the root’s SOA record, so the query went to the internet.',
        zone.length > 1 && sentence(`The denial comes from the zone ${zone}`),
        who.length > 0 && `Queries to ${listed(having)} come from ${listed(who)}.`,
      ],
      ...(zone === '.' ? ofRoot(having[0]!) : { why: said.why, fix: fixes(lacking, having[0]!) }),
      prove: `run ndots query ${names[0]!} @${lacking[0]!}, then again with @${having[0]!}`,
      exchanges: observed.affectedExchanges(({ name }) => names.includes(name)),
      affected: names,
    };
  },
};

/**
 * Only the version that denies the name is in the capture: other names of the zone have private
 * addresses there, so that it is an internal one.
 */
function oneSided(observed: Observations, claims: Claims): FoundCause | null {
  const { names, replyFaults, domains, affected } = observed;
  const isOutside = (name: string): boolean =>
    !isClusterName(observed, name) && domains.domainOf(name) === null && !claims.names.has(name);
  const denied = names.list.filter(
    ({ name, outcomes: { nxdomain, found, nodata } }) =>
      nxdomain >= MIN_REPLIES_OF_KIND && found + nodata === 0 && isOutside(name),
  );
  for (const [zone, theirs] of Map.groupBy(
    denied,
    ({ name }) => replyFaults.zones.get(name)?.zone ?? '',
  )) {
    // A top-level domain has no separate version.
    if (zone.split('.').length <= 2) continue;
    const own = names.list.filter(
      ({ name, outcomes, addresses }) =>
        outcomes.found > 0 && isBelow(name, zone) && addresses.length > 0,
    );
    const internal = own.filter(({ addresses }) => addresses.every(isPrivate));
    const missing = [...new Set(theirs.flatMap(({ name }) => (isBelow(name, zone) ? name : [])))];
    const failing = affected.filter(({ name }) => missing.includes(absoluteName(name)));
    if (
      internal.length === 0 ||
      internal.length < own.length ||
      failing.length < MIN_FAILED_LOOKUPS
    )
      continue;
    const behind = upstreams(observed);
    const servers = [
      ...new Set(theirs.flatMap(({ servers: each }) => [...each].map(([one]) => one))),
    ];
    const upstream = servers.filter((server) => behind.has(server));
    const others = [...behind].filter((server) => !servers.includes(server));
    for (const name of missing) claims.names.add(name);
    return {
      ...said,
      severity: 'warning',
      confidence: upstream.length > 0 ? 0.8 : 0.7,
      seen: [
        sentence(
          `All ${theirs.reduce((sum, { outcomes }) => sum + outcomes.nxdomain, 0)} queries for ${listed(missing)} got NXDOMAIN from the zone ${zone}`,
        ),
        sentence(
          `Other names of this zone have private addresses: ${listed(internal.map(({ name, addresses }) => `${name} ${addresses.join(' ')}`))}`,
        ),
        upstream.length > 0 &&
          others.length > 0 &&
          `The cluster’s DNS queries ${listed(upstream)} for this zone, and ${listed(others)} for other names.`,
        'The capture does not show whether another server has the name, so query a public resolver.',
      ],
      why: said.why,
      fix: fixes(upstream.length > 0 ? upstream : servers, 'a public resolver'),
      prove: `run ndots query ${missing[0]!} @${(upstream[0] ?? servers[0])!}, then again with @9.9.9.9`,
      exchanges: failing.flatMap(({ exchanges }) => exchanges),
      affected: missing,
    };
  }
  return null;
}

function difference(view: NameView, observed: Observations): Difference | null {
  // One after the other, the name came or went.
  const isBeside =
    view.firstFoundMs < view.lastNegativeMs && view.firstNegativeMs < view.lastFoundMs;
  if (!isBeside) return null;
  const servers = [...view.servers];
  const having = servers.flatMap(([server, { found, nxdomain }]) =>
    found >= MIN_REPLIES_OF_KIND && nxdomain === 0 ? server : [],
  );
  const lacking = servers.flatMap(([server, { found, nodata, nxdomain }]) =>
    nxdomain >= MIN_REPLIES_OF_KIND && found + nodata === 0 ? server : [],
  );
  // Servers that one client asks in turn are another finding.
  const isInTurn = having.some((one) =>
    lacking.some((other) => serveTheSame(observed, one, other)),
  );
  return having.length === 0 || lacking.length === 0 || isInTurn ? null : { view, having, lacking };
}
