/** Servers of which some say that a name exists, and others that it does not. */
import { podAt } from '../cluster/facts.ts';
import type { ServerReply } from '../cluster/asking.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
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
import { ofReplicas, ofUpstreams } from './differing-texts.ts';
import { listed, sentence } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { MANY_NXDOMAIN, MIN_EACH_WAY } from '../thresholds/answers.ts';

/** The number of names compared. @param isOwn these are cluster names */
function agreed(observed: Observations, isOwn: boolean): Verdict {
  const compared = observed.names.list.filter(
    ({ name, servers }) => isOfCluster(name, observed) === isOwn && [...servers].length > 1,
  ).length;
  const what = isOwn ? 'names of the cluster' : 'external names';
  return compared === 0
    ? unknown(`none of the ${what} was asked of two servers`)
    : excluded(
        `servers agree whether ${compared} ${what} exist (names and types that two of them or more were asked for)`,
      );
}

interface ServerDifference {
  readonly view: NameView;
  readonly having: readonly string[];
  readonly lacking: readonly string[];
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
    if (all === null) return unknown('no name was asked of two servers');
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
      return unknown('there is no name that several DNS pods could be asked for');
    if (wrong.length + outside.length === 0)
      return excluded(
        `DNS pods answer ${new Set(known.map(({ name }) => name)).size} names of services as the API server has them`,
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
              `${podAt(facts, server)}: ${name} is ${data.join(' ') || outcome}; the service has ${expected.join(' ') || 'an address of IPv6'}.`,
          ),
        ...(outside.length > 0
          ? [
              `${outside[0]!.name} is ${[...new Set(outside.map(({ outcome }) => outcome))].join(' or ')}, by the DNS pod that is asked.`,
            ]
          : []),
      ],
      affected: [...servers].map((server) => podAt(facts, server)),
      why: 'A replica sees another cluster than the others: its connection to the API server hangs, it has an older Corefile, or its cache holds outdated records. A client gets one answer or the other by chance.',
      fix: [
        'Restart that pod, and look at its log for errors of the API (reflector, watch).',
        'cache { disable success CLUSTERDOMAIN; disable denial CLUSTERDOMAIN }: kubernetes answers from memory anyway.',
      ],
      prove: `ndots query ${[...wrong, ...outside][0]!.name} @${[...servers][0]!}, and the same @ another DNS pod`,
      disproved: 'all replicas answer alike a minute later: then the name was new',
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
    if (all === null) return unknown('no name was asked of two servers');
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
        ? unknown('no name outside the cluster is known to compare them by: --name NAME')
        : excluded('upstreams of one zone know the same names');
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
      why: 'The first NXDOMAIN is final: the other server, which has the name, is not queried. Lookups fail as often as the wrong one is chosen.',
      fix: [
        'A server block for the private zones, forwarded to the private servers only; the rest to servers of one kind.',
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
    seen: [
      `${listed([...keys])}: ${listed(having)} ${having.length === 1 ? 'has' : 'have'} it; ${listed(lacking)} ${lacking.length === 1 ? 'says' : 'say'} NXDOMAIN, in the same minutes.`,
    ],
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
  return found.length > 0 ? found : seldomAsked(observed, views);
}

/**
 * The same for names that are too rare to decide alone. A server that has one name of the zone has
 * all, and one that lacks one lacks all. Some names are found first and then denied, others the
 * reverse. A change of the zone cannot cause both.
 */
function seldomAsked(
  observed: Observations,
  views: readonly NameView[],
): readonly ServerDifference[] {
  const mixed = views.flatMap((view) => {
    const servers = [...view.servers];
    const having = servers.flatMap(([server, { found, nodata }]) =>
      found + nodata > 0 ? server : [],
    );
    const lacking = servers.flatMap(([server, { nxdomain }]) => (nxdomain > 0 ? server : []));
    return having.length > 0 && lacking.length > 0 ? [{ view, having, lacking }] : [];
  });
  return [...Map.groupBy(mixed, ({ view }) => parentOf(view.name)).values()].flatMap((zone) => {
    const having = [...new Set(zone.flatMap((each) => each.having))];
    const lacking = [...new Set(zone.flatMap((each) => each.lacking))];
    const standsBeside = having.some((one) =>
      lacking.some((other) => serveTheSame(observed, one, other)),
    );
    if (!standsBeside || having.some((one) => lacking.includes(one))) return [];
    const { gone, come } = changes(zone.map(({ view }) => view));
    return Math.min(gone.size, come.size) >= MIN_EACH_WAY
      ? zone.map(({ view }) => ({ view, having, lacking }))
      : [];
  });
}

/** Names that were found before they were denied, and the other way round. */
function changes(views: readonly NameView[]): {
  readonly gone: ReadonlySet<string>;
  readonly come: ReadonlySet<string>;
} {
  const gone = views.filter((view) => view.firstFoundMs < view.lastNegativeMs);
  const come = views.filter((view) => view.firstNegativeMs < view.lastFoundMs);
  const namesOf = (list: readonly NameView[]): ReadonlySet<string> =>
    new Set(list.map(({ name }) => name));
  return { gone: namesOf(gone), come: namesOf(come) };
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
  const servers = [...new Set(views.flatMap(({ servers: each }) => [...each].map(([one]) => one)))];
  const count = (kind: 'found' | 'nodata' | 'nxdomain'): number =>
    views.reduce((sum, { outcomes }) => sum + outcomes[kind], 0);
  const isOwn = names.some((name) => observed.domains.isOfCluster(name) || name.includes('.svc.'));
  return {
    ...(isOwn ? ofReplicas : ofUpstreams),
    severity: 'critical',
    confidence: 0.85,
    seen: [
      sentence(
        `${listed(names)}: ${listed(servers)} answered ${count('found') + count('nodata')} times that the name exists and ${count('nxdomain')} times NXDOMAIN, alternating, also for one type`,
      ),
      `The capture does not show which ${isOwn ? 'DNS pod' : 'server'} behind ${listed(servers)} gave which answer: capture on the node.`,
    ],
    prove: isOwn
      ? `ndots query ${names[0]!} @POD for each DNS pod, several times`
      : `ndots query ${names[0]!} @UPSTREAM for each upstream in the Corefile (forward)`,
    exchanges: observed.affected.flatMap(({ exchanges }) =>
      exchanges.filter(({ name }) => keys.has(name)),
    ),
  };
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
