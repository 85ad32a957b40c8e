/** Servers of which some say that a name exists, and others that it does not. */
import { TYPE } from '../../../server/wire/iana.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import { comesAndGoes } from '../observe/comes-and-goes.ts';
import { isOther, type ZoneCopy } from '../observe/zone-copies.ts';
import { podAt } from '../cluster/facts.ts';
import type { ServerReply } from '../cluster/asking.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import type { Outcomes } from '../observe/outcomes.ts';
import { isPrivate } from '../observe/private-address.ts';
import { mixedNames } from '../observe/mixed-names.ts';
import { serveTheSame } from '../observe/roles.ts';
import { isRemembered } from '../observe/remembered-denial.ts';
import {
  excluded,
  unknown,
  type Finding,
  type FindingKind,
  type Verdict,
  clusterFinding,
  notAsked,
  noUpstreams,
} from './finding.ts';
import { clocks, listed, sentence } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import {
  MANY_NXDOMAIN,
  MIN_SAME_ANSWERS,
  MIN_VERSIONS_MS,
  TTL_ROUNDED_MS,
} from '../thresholds/answers.ts';

/** The number of names compared. @param isOwn these are cluster names */
function agreed(observed: Observations, isOwn: boolean): Verdict {
  const compared = observed.names.list.filter(
    ({ name, servers }) => isOfCluster(name, observed) === isOwn && [...servers].length > 1,
  ).length;
  const what = isOwn ? 'cluster names' : 'external names';
  return compared === 0
    ? unknown(
        `two servers were never asked for the same ${isOwn ? 'cluster name' : 'external name'}`,
      )
    : excluded(
        `servers agree whether ${compared} ${what} exist (names and types for which at least two of them were queried)`,
      );
}

interface ServerDifference {
  readonly view: NameView;
  readonly having: readonly string[];
  readonly lacking: readonly string[];
}

type Text = Pick<Finding, 'code' | 'title' | 'why' | 'fix' | 'disproved'>;

/** Texts for DNS pods that disagree. */
const ofReplicas: Text = {
  code: 'ND8001',
  title: 'DNS pods of the cluster give different answers to the same question',
  why: 'Replicas have different views of the cluster. A replica may have lost its connection to the API server, or some may have cached a new name as missing. CoreDNS’s autopath may know the client’s pod on one replica but not yet on another. A client gets one answer or the other by chance, even for A and AAAA in one lookup.',
  fix: [
    'If the Corefile has autopath @kubernetes: remove it, or replace it with autopath @name (ndots), which does not depend on pods.',
    'Set cache { denial 9984 5 }, or disable denial for the cluster’s zone, so that new names appear soon.',
    'Check each replica’s log for API connection errors.',
  ],
  disproved: 'all replicas give the same answer a minute later (the name was new)',
};

/** Texts for upstreams that disagree. */
const ofUpstreams: Text = {
  code: 'ND4005',
  title: 'Upstream servers that take turns do not have the same names',
  why: 'Servers that take turns need the same names, but a private server and a public one do not have them. The first NXDOMAIN is final, so the other server, which has the name, is not queried. Lookups fail as often as the wrong one is chosen.',
  fix: [
    'Add a server block for the private zones that forwards only to the private servers, and forward the rest to servers of one kind.',
    'forward { policy sequential } hides the problem as long as the first server is up.',
  ],
  disproved: 'both servers give the same answer when queried directly',
};

/** Two versions of one zone at the same time, the newer one first, if one is. */
type Versions = readonly [newer: ZoneCopy, older: ZoneCopy];

/** One server has an old copy of a zone, or a copy from elsewhere, and names differ because of it. */
export const zoneVersions: FindingKind = {
  code: ofReplicas.code,
  title: ofReplicas.title,
  name: 'DNS pods that disagree',
  inCapture(observed, claims) {
    const { differing } = observed.replyFaults.copies;
    if (differing.length === 0) return unknown('no zone was seen in more than one version');
    const found = differing.flatMap((copies) => {
      const versions = versionsOf(copies, observed);
      const names = versions === null ? [] : differingNames(versions[0].zone, observed, claims);
      return versions === null || names.length === 0 ? [] : [{ versions, names }];
    });
    const [first] = found;
    if (first === undefined)
      return excluded(
        'names are the same in all versions of their zones, or the zones changed once',
      );
    for (const { versions } of found)
      for (const { name } of observed.names.list)
        if (isBelow(name, versions[0].zone)) claims.names.add(name);
    const { versions, names } = first;
    const [newer, older] = versions;
    const { zone } = newer;
    const isOwn = isOfCluster(zone, observed);
    const isStale = newer.primary === older.primary;
    const isHidden = newer.server === older.server;
    const servers = new Set(versions.map(({ server }) => server));
    const keys = new Set(names.map(({ name }) => name));
    const list = [...keys];
    return {
      ...(isOwn ? ofReplicas : ofUpstreams),
      severity: 'critical',
      confidence: isHidden ? 0.88 : 0.94,
      seen: [
        `The zone ${zone.slice(0, -1)} is served in two versions (SOA): ${versionText(newer, isStale)}; ${versionText(older, isStale)}.`,
        ...names.slice(0, MIN_SAME_ANSWERS + 1).map((view) => nameText(view, servers)),
        ...(isHidden
          ? [
              `The capture does not show which ${isOwn ? 'DNS pod' : 'server'} behind ${newer.server} has which version: capture on the node.`,
            ]
          : []),
      ],
      why: isStale
        ? `${isHidden ? 'One of the servers' : older.server} has an old copy of the zone: ${isOwn ? 'it lost its connection to the API server (its watch hangs) or has an old zone file' : 'a secondary server that no longer transfers the zone'}. New names are missing there, and changed names still have their old address. A client gets one version or the other by chance.`
        : ofUpstreams.why,
      fix: isStale
        ? [
            isOwn
              ? `Restart ${isHidden ? 'the DNS pods one by one' : `the DNS pod ${older.server}`}, and check the log for API connection errors (reflector, watch).`
              : `Find out why ${isHidden ? 'one server' : older.server} does not transfer the zone (its log, SOA timers, NOTIFY, transfer rights), and remove it from forward until it does.`,
          ]
        : ofUpstreams.fix,
      prove: `ndots query ${zone} SOA @${isHidden ? 'EACH SERVER' : `${older.server}, and @${newer.server}`}: the serial numbers and primaries differ`,
      disproved: 'all servers give the same SOA record a minute later (the zone had just changed)',
      exchanges: observed.affected.flatMap(({ exchanges }) =>
        exchanges.filter(({ name }) => keys.has(name)),
      ),
      affected: list,
    };
  },
};

/** Two versions that two servers give for some time, or one address in turns; null: there are none. */
function versionsOf(copies: readonly ZoneCopy[], observed: Observations): Versions | null {
  const often = copies.filter(({ count }) => count >= MIN_SAME_ANSWERS);
  const pairs = often.flatMap((one, at) =>
    often.slice(at + 1).flatMap((other): Versions[] => {
      if (!isOther(one, other)) return [];
      const isHidden = one.server === other.server;
      const isHere = isHidden
        ? Math.min(one.returned, other.returned) >= MIN_SAME_ANSWERS
        : overlapMs(one, other) >= MIN_VERSIONS_MS &&
          serveTheSame(observed, one.server, other.server);
      return isHere ? [one.serial >= other.serial ? [one, other] : [other, one]] : [];
    }),
  );
  // A server that hands on both versions is not the one that has them.
  const single = pairs.filter((pair) =>
    pair.every(({ server }) => often.filter((each) => each.server === server).length === 1),
  );
  return single[0] ?? pairs.find(([one, other]) => one.server === other.server) ?? pairs[0] ?? null;
}

function overlapMs(
  one: { readonly firstMs: number; readonly lastMs: number },
  other: { readonly firstMs: number; readonly lastMs: number },
): number {
  return Math.min(one.lastMs, other.lastMs) - Math.max(one.firstMs, other.firstMs);
}

/** Names of the zone that are found and missing at a time, or have several addresses. */
function differingNames(zone: string, observed: Observations, claims: Claims): readonly NameView[] {
  return observed.names.list.filter((view) => {
    const { name, type, outcomes, sets, firstFoundMs, lastFoundMs } = view;
    if (type !== TYPE.A || outcomes.found < MIN_SAME_ANSWERS || !isBelow(name, zone)) return false;
    if (claims.names.has(name) || comesAndGoes(view) || isRemembered(observed, view)) return false;
    const isMissing = [view, observed.names.get(name, TYPE.AAAA)].some(
      (each) =>
        each !== undefined &&
        each.outcomes.nxdomain >= MIN_SAME_ANSWERS &&
        firstFoundMs < each.lastNegativeMs &&
        each.firstNegativeMs < lastFoundMs,
    );
    const isOwn = isOfCluster(name, observed);
    // Caches keep an old answer for as long as its TTL.
    const often = (sets?.list ?? []).filter(({ count }) => count >= MIN_SAME_ANSWERS);
    return (
      isMissing ||
      often.some((one) =>
        often.some(
          (other) =>
            one.hash !== other.hash &&
            // External names may have other addresses each time.
            (isOwn || one.addresses.every(isPrivate) !== other.addresses.every(isPrivate)) &&
            overlapMs(one, other) > 1000 * Math.max(one.ttl, other.ttl) + TTL_ROUNDED_MS,
        ),
      )
    );
  });
}

function versionText(
  { server, primary, serial, count, firstMs, lastMs }: ZoneCopy,
  isStale: boolean,
): string {
  const what = isStale ? `serial ${serial}` : `that of ${primary.slice(0, -1)}, serial ${serial}`;
  return `${server} gives ${what} (${count} replies, ${clocks(firstMs, lastMs).join(' to ')})`;
}

/** Answers of the servers with these versions for a name. */
function nameText(
  { name, outcomes, servers, sets }: NameView,
  ofVersions: ReadonlySet<string>,
): string {
  const parts = (sets?.list ?? []).flatMap(({ server, addresses, count }) =>
    ofVersions.has(server) ? `${addresses.join(' ')} from ${server} (${count} times)` : [],
  );
  for (const [server, { nxdomain }] of servers)
    if (nxdomain > 0 && ofVersions.has(server))
      parts.push(`NXDOMAIN from ${server} (${nxdomain} times)`);
  if (outcomes.nxdomain === 0 && new Set(sets?.list.map(({ hash }) => hash)).size < 2)
    parts.push('its AAAA query sometimes gets NXDOMAIN');
  return sentence(`${name} is ${parts.join('; ')}`);
}

/**
 * Replicas of the cluster’s DNS do not know the same (autopath, caches, one without connection to
 * the API).
 */
export const replicasDiffer: FindingKind = {
  code: ofReplicas.code,
  title: ofReplicas.title,
  name: 'DNS pods that disagree',
  inCapture(observed, claims) {
    const all = differences(observed, claims);
    if (all === null) return unknown('two servers were never asked for the same name');
    const found = all.filter(({ view }) => isOfCluster(view.name, observed));
    if (found.length === 0) return agreed(observed, true);
    explainZones(observed, claims, found);
    return {
      ...parts(observed, found),
      ...ofReplicas,
      prove: `ndots query ${found[0]!.view.name} @POD for each DNS pod`,
    };
  },
  inCluster(facts) {
    const { answers } = facts;
    if (answers === null) return notAsked;
    const known = answers.known.filter(
      ({ asked, outcome }) => asked.reply !== null && outcome !== 'SERVFAIL',
    );
    const wrong = known.filter(
      ({ data, expected, outcome }) =>
        outcome === 'NXDOMAIN' ||
        (expected.length > 0 && !expected.some((each) => data.includes(each))),
    );
    const outside = differing(answers.external);
    if (known.length === 0 && answers.external.length === 0)
      return unknown('there is no name for which several DNS pods could be queried');
    if (wrong.length + outside.length === 0)
      return excluded(
        `DNS pods answer ${new Set(known.map(({ name }) => name)).size} Service names exactly as the API server has them`,
      );
    const servers = new Set([...wrong, ...outside].map(({ server }) => server));
    return clusterFinding(this, {
      severity: 'critical',
      confidence: wrong.length > 1 ? 0.93 : 0.85,
      seen: [
        ...wrong
          .slice(0, 4)
          .map(
            ({ server, name, outcome, data, expected }) =>
              `${podAt(facts, server)}: ${name} is ${data.join(' ') || outcome}; the service has ${expected.join(' ') || 'an IPv6 address'}.`,
          ),
        ...(outside.length > 0
          ? [
              `${outside[0]!.name} is ${[...new Set(outside.map(({ outcome }) => outcome))].join(' or ')}, depending on the DNS pod that is queried.`,
            ]
          : []),
      ],
      affected: [...servers].map((server) => podAt(facts, server)),
      why: 'One replica has a different view of the cluster from the others: its connection to the API server hangs, it has an older Corefile, or its cache holds outdated records. A client gets one answer or the other by chance.',
      fix: [
        'Restart that pod, and check its log for API errors (reflector, watch).',
        'Set cache { disable success CLUSTERDOMAIN; disable denial CLUSTERDOMAIN }: kubernetes answers from memory anyway.',
      ],
      prove: `ndots query ${[...wrong, ...outside][0]!.name} @${[...servers][0]!}, and the same @ another DNS pod`,
      disproved: 'all replicas give the same answer a minute later (the name was new)',
    });
  },
};

/** Upstream servers have different views of the world. */
export const viewsDiffer: FindingKind = {
  code: ofUpstreams.code,
  title: ofUpstreams.title,
  name: 'upstream servers that disagree',
  inCapture(observed, claims) {
    const all = differences(observed, claims);
    if (all === null) return unknown('two servers were never asked for the same name');
    const found = all.filter(({ view }) => !isOfCluster(view.name, observed));
    if (found.length === 0) return agreed(observed, false);
    explainZones(observed, claims, found);
    return {
      ...parts(observed, found),
      ...ofUpstreams,
      prove: `ndots query ${found[0]!.view.name} @${found[0]!.having[0]}, and @${found[0]!.lacking[0]}`,
    };
  },
  inCluster({ upstreams, answers }) {
    const several = (upstreams ?? []).filter(({ replies }) => replies.length > 1);
    if (several.length === 0)
      return upstreams === null || upstreams.length === 0
        ? noUpstreams
        : excluded('each zone has one upstream');
    const found = several.flatMap(({ differences }) => differences);
    if (found.length === 0)
      return (answers?.plan.external.length ?? 0) === 0
        ? unknown('no external name is known for comparing them: give one with --name NAME')
        : excluded('the upstreams of each zone know the same names');
    const [first] = found;
    return clusterFinding(this, {
      severity: 'critical',
      confidence: 0.93,
      seen: found.map(
        ({ name, having, lacking }) =>
          `${name}: ${listed(having)} ${having.length === 1 ? 'has' : 'have'} it; ${listed(lacking)} ${lacking.length === 1 ? 'says' : 'say'} NXDOMAIN.`,
      ),
      affected: [...new Set(found.flatMap(({ lacking }) => lacking))].map(
        (each) => `upstream ${each}`,
      ),
      why: 'The first NXDOMAIN is final, so the other server, which has the name, is not queried. Lookups fail as often as the wrong one is chosen.',
      fix: [
        'Add a server block for the private zones that forwards only to the private servers, and forward the rest to servers of one kind.',
      ],
      prove: `ndots query ${first!.name} @${first!.having[0]!}, and @${first!.lacking[0]!}`,
      disproved: 'both servers give the same answer to a repeated query',
      places: several.map(({ place }) => place),
    });
  },
};

/**
 * True if A and AAAA of these names, or of a neighbour, disagree by chance, which is a sign of it.
 */
function explainZones(
  { names }: Observations,
  claims: Claims,
  found: readonly ServerDifference[],
): void {
  const zones = new Set(found.map(({ view }) => parentOf(view.name)));
  for (const { name } of names.list) if (zones.has(parentOf(name))) claims.names.add(name);
}

function parts(
  observed: Observations,
  found: readonly ServerDifference[],
): Pick<Finding, 'severity' | 'confidence' | 'seen' | 'exchanges'> {
  const { having, lacking } = found[0]!;
  const keys = new Set(found.map(({ view }) => view.name));
  return {
    severity: 'critical',
    confidence: found.length >= 2 ? 0.93 : 0.85,
    seen: [differenceText([...keys], having, lacking)],
    exchanges: observed.affected.flatMap((lookup) =>
      lookup.exchanges.filter(({ name }) => keys.has(name)),
    ),
  };
}

/**
 * Names that some servers have and others do not, alternating in time; null if no name was asked of
 * two servers.
 */
function differences(observed: Observations, claims: Claims): readonly ServerDifference[] | null {
  const found: ServerDifference[] = [];
  const views = observed.names.list.filter(
    ({ name, servers }) => servers.size >= 2 && !claims.names.has(name),
  );
  if (views.length === 0) return null;
  for (const view of views) {
    // Alternating, not one after the other: otherwise the name came or went.
    const overlap =
      view.firstFoundMs < view.lastNegativeMs && view.firstNegativeMs < view.lastFoundMs;
    if (!overlap || view.outcomes.found < 2 || view.outcomes.nxdomain < 2) continue;
    // A new name, which one server had as missing before, and another one did not.
    if (isRemembered(observed, view)) continue;
    const servers = [...view.servers];
    const having = servers
      .filter(([, { found: yes, nodata, nxdomain }]) => yes + nodata > 0 && nxdomain === 0)
      .map(([server]) => server);
    const lacking = servers
      // It may have had the name before, and have it again.
      .filter(
        ([, { found: yes, nxdomain }]) =>
          nxdomain >= (yes === 0 ? 1 : Math.min(yes / 2 + 2, MANY_NXDOMAIN)),
      )
      .map(([server]) => server)
      .filter((other) => having.some((one) => serveTheSame(observed, one, other)));
    // A client that uses only one server has chosen it, right or wrong: then the servers are not
    // replicas.
    if (lacking.length > 0) found.push({ view, having, lacking });
  }
  return found;
}

function parentOf(name: string): string {
  return name.slice(name.indexOf('.') + 1);
}

function isOfCluster(name: string, { domains }: Observations): boolean {
  return domains.isOfCluster(name) || name.includes('.svc.');
}

/** Servers behind one address disagree, and the capture does not tell them apart. */
export const hiddenServersDiffer: FindingKind = {
  code: ofReplicas.code,
  title: ofReplicas.title,
  name: 'DNS pods that disagree',
  inCapture(observed, claims) {
    const { both } = mixedNames(observed, claims);
    return both.length === 0 ? [] : hiddenServers(observed, both);
  },
};

/** Servers behind one address disagree whether names exist, and the capture does not tell them apart. */
function hiddenServers(observed: Observations, names: readonly string[]): Finding {
  const keys = new Set(names);
  const views = observed.names.list.filter(({ name }) => keys.has(name));
  const ofServers = views.flatMap(({ servers: each }) => [...each]);
  const those = (isHere: (of: Outcomes) => boolean): readonly string[] => [
    ...new Set(ofServers.flatMap(([server, of]) => (isHere(of) ? server : []))),
  ];
  const [having, lacking] = [
    those(({ found, nodata }) => found + nodata > 0),
    those(({ nxdomain }) => nxdomain > 0),
  ];
  const servers = listed(those(() => true));
  const count = (kind: 'found' | 'nodata' | 'nxdomain'): number =>
    views.reduce((sum, { outcomes }) => sum + outcomes[kind], 0);
  const isOwn = names.some((name) => isOfCluster(name, observed));
  return {
    ...(isOwn ? ofReplicas : ofUpstreams),
    severity: 'critical',
    confidence: 0.85,
    seen: having.some((server) => lacking.includes(server))
      ? [
          sentence(
            `${listed(names)}: ${servers} answered ${count('found') + count('nodata')} times that the name exists and ${count('nxdomain')} times NXDOMAIN, in alternation, even for one type`,
          ),
          `The capture does not show which ${isOwn ? 'DNS pod' : 'server'} behind ${servers} gave which answer: capture on the node.`,
        ]
      : [differenceText(names, having, lacking)],
    prove: isOwn
      ? `ndots query ${names[0]!} @POD for each DNS pod, several times`
      : `ndots query ${names[0]!} @UPSTREAM for each upstream in the Corefile (forward)`,
    exchanges: observed.affected.flatMap(({ exchanges }) =>
      exchanges.filter(({ name }) => keys.has(name)),
    ),
  };
}

function differenceText(
  names: readonly string[],
  having: readonly string[],
  lacking: readonly string[],
): string {
  return `${listed(names)}: ${listed(having)} ${having.length === 1 ? 'has' : 'have'} it; ${listed(lacking)} ${lacking.length === 1 ? 'says' : 'say'} NXDOMAIN, in the same minutes.`;
}

/**
 * Replies of the minority of servers, if some have the name and others deny it.
 */
function differing(replies: readonly ServerReply[]): readonly ServerReply[] {
  const byName = Map.groupBy(replies, ({ name }) => name);
  return [...byName.values()].flatMap((same) => {
    const having = same.filter(({ outcome }) => outcome === 'NOERROR' || outcome === 'NODATA');
    const lacking = same.filter(({ outcome }) => outcome === 'NXDOMAIN');
    if (having.length === 0 || lacking.length === 0) return [];
    return having.length < lacking.length ? having : lacking;
  });
}
