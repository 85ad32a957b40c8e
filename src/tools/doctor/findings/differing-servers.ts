/** Servers that disagree about whether a name exists. */
import { rcodeName, TYPE } from '../../../server/wire/iana.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import { comesAndGoes } from '../observe/comes-and-goes.ts';
import { isClusterName, parentOf } from '../observe/domain-of-name.ts';
import { isOther, type ZoneCopy } from '../observe/zone-copies.ts';
import { podAt } from '../cluster/facts.ts';
import type { ServerReply } from '../cluster/asking.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { isFailure } from '../observe/outcomes.ts';
import { isOutside } from '../observe/outside-address.ts';
import { isPrivate } from '../observe/private-address.ts';
import { mixedNames } from '../observe/mixed-names.ts';
import { serveTheSame } from '../observe/roles.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import { isRemembered } from '../observe/remembered-denial.ts';
import {
  excluded,
  unknown,
  type Finding,
  type FindingKind,
  type Verdict,
  notAsked,
  noUpstreams,
} from './finding.ts';
import { fromTo, listed } from '../texts.ts';
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
    ({ name, servers }) => isClusterName(observed, name) === isOwn && servers.size > 1,
  ).length;
  const what = isOwn ? 'cluster name' : 'external name';
  return compared === 0
    ? unknown(`no ${what} was queried at two servers`)
    : excluded(`servers agree about ${compared} ${what}s that were queried at two or more of them`);
}

interface ServerDifference {
  readonly view: NameView;
  readonly having: readonly string[];
  readonly lacking: readonly string[];
}

type Text = Pick<Finding, 'code' | 'title' | 'why' | 'fix' | 'disproved'>;

const ofReplicas: Text = {
  code: 'ND8001',
  title: 'The cluster’s DNS pods give different answers to the same query',
  why: 'Replicas have different views of the cluster. A replica may have lost its connection to the API server, or some may have cached the absence of a new name. CoreDNS’s autopath may know the client’s pod on one replica but not yet on another. Which answer a client gets is chance, even for A and AAAA in one lookup.',
  fix: [
    'If the Corefile has autopath @kubernetes, remove it or replace it with autopath @name (ndots), which does not depend on pods.',
    'Set cache { denial 9984 5 }, or disable denial for the cluster’s zone, so that new names become visible soon.',
    'Check each replica’s log for API connection errors.',
  ],
  disproved: 'all replicas give the same answer a minute later (then the name was new)',
};

const ofUpstreams: Text = {
  code: 'ND4005',
  title: 'Upstream servers that queries alternate between do not have the same names',
  why: 'Servers that share the queries need the same names, but a private server and a public one do not have them. The first NXDOMAIN is final, so the other server, which has the name, is not queried. Lookups fail whenever the wrong server is chosen.',
  fix: [
    'Add a server block for the private zones that forwards only to the private servers, and forward the rest to servers that all have the same names.',
    'Until then, forward { policy sequential } hides the problem as long as the first server is up.',
  ],
  disproved: 'both servers give the same answer when they are queried directly',
};

const STALE_TITLE =
  'A secondary name server has an old copy of a zone, so its answers differ from the primary’s';

/** Two versions of one zone at the same time. If one is newer, it comes first. */
type Versions = readonly [newer: ZoneCopy, older: ZoneCopy];

/** One server has an old copy of a zone or a copy from another source, so names differ. */
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
        'names are the same in all versions of their zones, or the zones changed only once',
      );
    for (const { versions } of found)
      for (const { name } of observed.names.list)
        if (isBelow(name, versions[0].zone)) claims.names.add(name);
    const { versions, names } = first;
    const [newer, older] = versions;
    const { zone } = newer;
    const isOwn = isClusterName(observed, zone);
    const isStale = newer.primary === older.primary;
    const isHidden = newer.server === older.server;
    const servers = new Set(versions.map(({ server }) => server));
    // Zone transfers of the secondary that fail.
    const refusals = observed.affectedExchanges(
      (each) =>
        isStale &&
        !isHidden &&
        (each.type === TYPE.AXFR || each.type === TYPE.IXFR) &&
        each.name === zone &&
        each.client.address === older.server &&
        isFailure(each),
    );
    const refusing = [...new Set(refusals.map(({ server }) => server.address))];
    const keys = new Set(names.map(({ name }) => name));
    const list = [...keys];
    return {
      ...(isOwn ? ofReplicas : ofUpstreams),
      ...(isStale && !isOwn ? { title: STALE_TITLE } : {}),
      severity: 'critical',
      confidence: isHidden ? 0.88 : 0.94,
      seen: [
        `The zone ${zone.slice(0, -1)} is served in two versions, as its SOA records show. ${versionText(newer, isStale)}, and ${versionText(older, isStale)}.`,
        refusing.length > 0 &&
          `${listed(refusing)} answered ${refusals.length} zone transfers that ${older.server} requested with ${listed(refusals.map(({ rcode }) => rcodeName(rcode)))}.`,
        ...names.slice(0, MIN_SAME_ANSWERS + 1).map((view) => nameText(view, servers)),
        isHidden &&
          `The capture does not show which ${isOwn ? 'DNS pod' : 'server'} behind ${newer.server} has which version. Capture on the node to see it.`,
      ],
      why: isStale
        ? `${isHidden ? 'One of the servers' : older.server} has an old copy of the zone, because ${isOwn ? 'it lost its connection to the API server (its watch hangs) or has an old zone file' : 'it is a secondary server that no longer transfers the zone'}. New names are missing there, and changed names still have their old address. Which version a client gets is chance.`
        : ofUpstreams.why,
      fix: isStale
        ? [
            isOwn
              ? `Restart ${isHidden ? 'the DNS pods one by one' : `the DNS pod ${older.server}`}, and check the log for API connection errors (reflector, watch).`
              : refusing.length > 0
                ? `Allow ${older.server} to transfer ${zone} from ${listed(refusing)} (provide-xfr in NSD, allow-transfer in BIND, acl in Knot; check the TSIG key). Remove ${older.server} from forward until it has the new serial.`
                : `Find out why ${isHidden ? 'one server' : older.server} does not transfer the zone (check its log, the SOA timers, NOTIFY and transfer permissions). Remove it from forward until it does.`,
          ]
        : ofUpstreams.fix,
      prove: `run ndots query ${zone} SOA @${isHidden ? 'SERVER for each server' : `${older.server} and again with @${newer.server}`}; the serial numbers or primaries differ`,
      disproved:
        'all servers return the same SOA record a minute later (then the zone had just changed)',
      exchanges: observed.affectedExchanges(({ name }) => keys.has(name)),
      affected: list,
    };
  },
};

/** Two versions that two servers serve for some time, or that one address alternates between. Otherwise null. */
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
  // A server that forwards both versions is not their source.
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

/** Names in the zone that are both found and missing at one time, or have several addresses. */
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
    const isOwn = isClusterName(observed, name);
    // Caches keep an old answer until its TTL expires.
    const often = (sets?.list ?? []).filter(({ count }) => count >= MIN_SAME_ANSWERS);
    return (
      isMissing ||
      often.some((one) =>
        often.some(
          (other) =>
            one.hash !== other.hash &&
            // External names may have different addresses each time.
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
  const what = isStale
    ? `serial ${serial}`
    : `the copy from ${primary.slice(0, -1)} with serial ${serial}`;
  return `${server} serves ${what} (${count} replies, ${fromTo(firstMs, lastMs, 'fine')})`;
}

/** The answers for a name from the servers with these versions. */
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
    parts.push('sometimes NXDOMAIN for AAAA');
  return `${name} is answered with ${parts.join('; ')}`;
}

/**
 * Replicas of the cluster’s DNS know different names (autopath, caches, a replica without a
 * connection to the API).
 */
export const replicasDiffer: FindingKind = {
  code: ofReplicas.code,
  title: ofReplicas.title,
  name: 'DNS pods that disagree',
  inCapture(observed, claims) {
    return disagreement(true, observed, claims);
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
      return unknown('there is no name that could be queried at several DNS pods');
    if (wrong.length + outside.length === 0)
      return excluded(
        `the DNS pods’ answers for ${new Set(known.map(({ name }) => name)).size} Service names match the API server`,
      );
    const servers = new Set([...wrong, ...outside].map(({ server }) => server));
    return {
      severity: 'critical',
      confidence: wrong.length > 1 ? 0.93 : 0.85,
      seen: [
        ...wrong
          .slice(0, 4)
          .map(
            ({ server, name, outcome, data, expected }) =>
              `${podAt(facts, server)} answers ${name} with ${data.join(' ') || outcome}, but the Service has ${expected.join(' ') || 'an IPv6 address'}.`,
          ),
        outside.length > 0 &&
          `${outside[0]!.name} gets ${[...new Set(outside.map(({ outcome }) => outcome))].join(' or ')}, depending on which DNS pod is queried.`,
      ],
      affected: [...servers].map((server) => podAt(facts, server)),
      why: 'One replica has a different view of the cluster from the others, because its connection to the API server hangs, it has an older Corefile, or its cache holds stale records. Which answer a client gets is chance.',
      fix: [
        'Restart that pod, and check its log for API server errors (reflector, watch).',
        'Set cache { disable success CLUSTERDOMAIN; disable denial CLUSTERDOMAIN }, since the kubernetes plugin answers from memory anyway.',
      ],
      prove: `run ndots query ${[...wrong, ...outside][0]!.name} @${[...servers][0]!}, then the same query at another DNS pod`,
      disproved: 'all replicas give the same answer a minute later (then the name was new)',
    };
  },
};

export const viewsDiffer: FindingKind = {
  code: ofUpstreams.code,
  title: ofUpstreams.title,
  name: 'upstream servers that disagree',
  inCapture(observed, claims) {
    return disagreement(false, observed, claims);
  },
  inCluster({ upstreams, answers }) {
    const several = (upstreams ?? []).filter(({ replies }) => replies.length > 1);
    if (several.length === 0)
      return upstreams === null || upstreams.length === 0
        ? noUpstreams
        : excluded('each zone has one upstream');
    const found = several.flatMap(({ differences }) => differences);
    const [first] = found;
    if (first === undefined)
      return (answers?.plan.external.length ?? 0) === 0
        ? unknown(
            'no external name is known that could be used to compare them (give one with --name NAME)',
          )
        : excluded('the upstreams of each zone agree about the names that were queried');
    return {
      severity: 'critical',
      confidence: 0.93,
      seen: found.map(
        ({ name, having, lacking }) =>
          `For ${name}, ${listed(having)} ${having.length === 1 ? 'has' : 'have'} it, but ${listed(lacking)} ${lacking.length === 1 ? 'answers' : 'answer'} NXDOMAIN.`,
      ),
      affected: [...new Set(found.flatMap(({ lacking }) => lacking))].map(
        (each) => `upstream ${each}`,
      ),
      why: 'The first NXDOMAIN is final, so the other server, which has the name, is not queried. Lookups fail whenever the wrong server is chosen.',
      fix: [
        'Add a server block for the private zones that forwards only to the private servers, and forward the rest to servers that all have the same names.',
      ],
      prove: `run ndots query ${first.name} @${first.having[0]!}, then again with @${first.lacking[0]!}`,
      disproved: 'both servers give the same answer when the query is repeated',
      places: several.map(({ place }) => place),
    };
  },
};

/** Servers that disagree about names. @param isOwn these are cluster names */
function disagreement(isOwn: boolean, observed: Observations, claims: Claims): Verdict {
  const all = differences(observed, claims);
  if (all === null) return unknown('no name was queried at two servers');
  const found = all.filter(({ view }) => isClusterName(observed, view.name) === isOwn);
  const [first] = found;
  if (first === undefined) return agreed(observed, isOwn);
  // A and AAAA that disagree in these zones are a consequence.
  const zones = new Set(found.map(({ view }) => parentOf(view.name)));
  for (const { name } of observed.names.list) if (zones.has(parentOf(name))) claims.names.add(name);
  const { view, having, lacking } = first;
  const keys = new Set(found.map((each) => each.view.name));
  return {
    ...(isOwn ? ofReplicas : ofUpstreams),
    severity: 'critical',
    confidence: found.length >= 2 ? 0.93 : 0.85,
    seen: [differenceText([...keys], having, lacking)],
    prove: isOwn
      ? `run ndots query ${view.name} @POD for each DNS pod`
      : `run ndots query ${view.name} @${having[0]}, then again with @${lacking[0]}`,
    exchanges: observed.affectedExchanges(({ name }) => keys.has(name)),
  };
}

/**
 * Names that some servers have and others do not, alternating in time. Null if no name was queried
 * at two servers.
 */
function differences(observed: Observations, claims: Claims): readonly ServerDifference[] | null {
  const found: ServerDifference[] = [];
  const views = observed.names.list.filter(
    ({ name, servers }) => servers.size >= 2 && !claims.names.has(name),
  );
  if (views.length === 0) return null;
  for (const view of views) {
    // They have to alternate. Otherwise, the name was created or deleted.
    const overlap =
      view.firstFoundMs < view.lastNegativeMs && view.firstNegativeMs < view.lastFoundMs;
    if (!overlap || view.outcomes.found < 2 || view.outcomes.nxdomain < 2) continue;
    // A new name whose absence one server had cached and another had not.
    if (isRemembered(observed, view)) continue;
    const servers = [...view.servers];
    const isOwn = isClusterName(observed, view.name);
    const having = servers
      .filter(([, { found: yes, nodata, nxdomain }]) => yes + nodata > 0 && nxdomain === 0)
      .map(([server]) => server);
    const lacking = servers
      // The server may have lost the name and found it again.
      .filter(
        ([, { found: yes, nxdomain }]) =>
          nxdomain >= (yes === 0 ? 1 : Math.min(yes / 2 + 2, MANY_NXDOMAIN)),
      )
      .map(([server]) => server)
      .filter((other) => having.some((one) => serveTheSame(observed, one, other)))
      // A public resolver is not a replica (see ND2007).
      .filter((other) => !isOwn || !isOutside(observed, other));
    // A client that uses only one server was configured that way, rightly or wrongly, so the servers
    // are not replicas.
    if (lacking.length > 0) found.push({ view, having, lacking });
  }
  return found;
}

/** Servers behind one address disagree, and the capture does not show which one answered. */
export const hiddenServersDiffer: FindingKind = {
  code: ofReplicas.code,
  title: ofReplicas.title,
  name: 'DNS pods that disagree',
  inCapture(observed, claims) {
    const { both: names } = mixedNames(observed, claims);
    if (names.length === 0) return [];
    const keys = new Set(names);
    const views = observed.names.list.filter(({ name }) => keys.has(name));
    const having = serversOfNames(views, ({ found, nodata }) => found + nodata > 0);
    const lacking = serversOfNames(views, ({ nxdomain }) => nxdomain > 0);
    const servers = listed([...serversOfNames(views)]);
    const count = (kind: 'found' | 'nodata' | 'nxdomain'): number =>
      views.reduce((sum, { outcomes }) => sum + outcomes[kind], 0);
    const isOwn = names.some((name) => isClusterName(observed, name));
    return {
      ...(isOwn ? ofReplicas : ofUpstreams),
      severity: 'critical',
      confidence: 0.85,
      seen: [...having].some((server) => lacking.has(server))
        ? [
            `For ${listed(names)}, ${servers} answered alternately, even for one type: ${count('found') + count('nodata')} times that the name exists and ${count('nxdomain')} times with NXDOMAIN`,
            `The capture does not show which ${isOwn ? 'DNS pod' : 'server'} behind ${servers} gave which answer. A capture on the DNS pods’ nodes or in each DNS pod does.`,
          ]
        : [differenceText(names, [...having], [...lacking])],
      prove: isOwn
        ? `run ndots query ${names[0]!} @POD several times for each DNS pod`
        : `run ndots query ${names[0]!} @UPSTREAM for each forward upstream in the Corefile`,
      exchanges: observed.affectedExchanges(({ name }) => keys.has(name)),
    };
  },
};

function differenceText(
  names: readonly string[],
  having: readonly string[],
  lacking: readonly string[],
): string {
  return `For ${listed(names)}, ${listed(having)} ${having.length === 1 ? 'has' : 'have'} ${names.length === 1 ? 'it' : 'them'}, but ${listed(lacking)} ${lacking.length === 1 ? 'answers' : 'answer'} NXDOMAIN during the same minutes.`;
}

/** The minority's replies, if some servers have the name and others deny it. */
function differing(replies: readonly ServerReply[]): readonly ServerReply[] {
  const byName = Map.groupBy(replies, ({ name }) => name);
  return [...byName.values()].flatMap((same) => {
    const having = same.filter(({ outcome }) => outcome === 'NOERROR' || outcome === 'NODATA');
    const lacking = same.filter(({ outcome }) => outcome === 'NXDOMAIN');
    if (having.length === 0 || lacking.length === 0) return [];
    return having.length < lacking.length ? having : lacking;
  });
}
