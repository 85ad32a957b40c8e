/** REFUSED: the servers that send it, and the clients that get it. */
import { addressTypes, EDE, errorName, RCODE } from '../../../server/wire/iana.ts';
import { commonZone, isBelow } from '../../../server/wire/within-zone.ts';
import type { NameView } from '../observe/name-view.ts';
import { isBarred, isOfBarred } from '../observe/barred.ts';
import type { Claims } from '../observe/claims.ts';
import type { ClientView } from '../observe/client-view.ts';
import type { Observations } from '../observe/observations.ts';
import { refusalRule, type RefusalRule } from '../observe/refusal-rule.ts';
import type { StatedReason } from '../observe/reply-faults.ts';
import type { ServerView } from '../observe/server-view.ts';
import { slowNames } from '../observe/slow-upstream.ts';
import { refusedClients, refusingPods, type Refusers } from '../observe/refusers.ts';
import { limitCause } from '../observe/refusal-limits.ts';
import { stubZone } from '../observe/stub-zone.ts';
import { programs, upstreams } from '../observe/roles.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { refusalCauses, type RefusalCause } from '../observe/refusal-causes.ts';
import { listed, sentence, share } from '../texts.ts';
import { ENDED_LOOKUPS, MIN_REFUSED_NAMES, REFUSED_AT_TIMES } from '../thresholds/errors.ts';
import {
  FROM_UPSTREAM_SHARE,
  MANY_ERRORS,
  MIN_CASES,
  NEARLY_ALL,
  OUTAGE_SHARE,
  RARE_SHARE,
} from '../thresholds/evidence.ts';

/** Extended DNS Errors that an acl sends. */
const BY_POLICY: ReadonlySet<number> = new Set([EDE.BLOCKED, EDE.PROHIBITED]);

export const refused: FindingKind = {
  code: 'ND4010',
  title: 'A name server refuses to answer',
  name: 'servers that refuse',
  inCapture(observed, claims) {
    if (observed.total.asked === 0) return unknown('no query was seen');
    const refusals = refusalsOf(observed, claims);
    const signs = signsOf(observed, refusals);
    const { names, whose, clients, asked, count, barred, said, isOnlySome, byClient } = refusals;
    const { server, isLimit } = signs;
    // Even if these clients send few queries, all their queries fail. Names that are answered at other times fail by chance.
    if (count < MANY_ERRORS || (!byClient && !isLimit && count < RARE_SHARE * asked))
      return excluded('REFUSED replies are rare');
    const ended = lookupsRefused(observed, clients);
    const lookups = whose.reduce((sum, each) => sum + each.lookups, 0);
    // Search-path queries count little, because one of them can make a lookup of many queries fail.
    const isMuch = ended >= MANY_ERRORS && ended >= ENDED_LOOKUPS * lookups;
    const late = isLimit ? slowNames(observed) : [];
    const cause = causeOf(observed, refusals, signs, late);
    return {
      title: cause.title ?? this.title,
      severity:
        byClient || isMuch || late.length > 0 || count >= OUTAGE_SHARE * asked
          ? 'critical'
          : 'warning',
      confidence: cause.confidence ?? 0.8,
      seen: [
        sentence(
          `${share(count, asked)} queries were REFUSED, most by ${mostBy(names, server, count)}. They include ${listed(names.map(({ name }) => name))}`,
        ),
        byClient
          ? `The refusals depend on the client. All queries from ${listed(barred.map(({ address }) => address))} are refused${isOnlySome ? ', while other clients are answered' : ''}.`
          : hasAnswers(clients)
            ? `${listed(clients.map(({ address }) => address))} got this error, while their other queries were answered.`
            : `${listed(clients.map(({ address }) => address))} got this error, and none of their queries was answered.`,
        ...cause.seen,
        ended > 0 && `${share(ended, lookups)} lookups ended without an answer because of it.`,
        ...said.map(
          ({ code, count: times }) =>
            `${times} of these replies carry Extended DNS Error ${code} (${errorName(code)}), so a rule refuses the client.`,
        ),
      ],
      why: cause.why,
      fix: cause.fix,
      prove: `run ndots query ${names[0]!.name} @${server} in such a pod; an Extended DNS Error may show the reason`,
      disproved: cause.disproved ?? 'another client is answered for the same name',
      exchanges: observed.affectedExchanges(({ rcode }) => rcode === RCODE.REFUSED),
    };
  },
};

/** The refusals that clients see. */
interface Refusals {
  readonly names: readonly NameView[];
  /** Of these names, at all servers. */
  readonly all: number;
  readonly whose: readonly ClientView[];
  /** Those of them that are refused. */
  readonly clients: readonly ClientView[];
  readonly asked: number;
  readonly count: number;
  /** Clients that are refused for every name. */
  readonly barred: readonly ClientView[];
  /** Reasons that the replies state (EDE). */
  readonly said: readonly StatedReason[];
  readonly isOnlySome: boolean;
  /** The refusals depend on the client. */
  readonly byClient: boolean;
}

function refusalsOf(observed: Observations, claims: Claims): Refusals {
  const names = observed.names.list
    .filter(
      (view) =>
        view.outcomes.refused > 0 &&
        !claims.names.has(view.name) &&
        !endsFailedSearch(view, observed),
    )
    .toSorted((one, other) => other.outcomes.refused - one.outcomes.refused);
  const all = names.reduce((sum, { outcomes }) => sum + outcomes.refused, 0);
  // A refusal that a name server forwards is seen twice, and the clients are affected.
  const whose = programs(observed);
  const clients = whose.filter(({ outcomes }) => outcomes.refused > 0);
  const asked = sumOf(whose, 'asked');
  const count = Math.min(all, sumOf(clients, 'refused'));
  const barred = clients.filter(isBarred);
  const said = observed.replyFaults.reasons.list.filter(
    (each) =>
      BY_POLICY.has(each.code) && (each.code === EDE.PROHIBITED || isOfBarred(each, observed)),
  );
  const isOnlySome = clients.length < whose.length;
  // If others are answered the same names, the refusals depend on the client.
  const byClient = barred.length === clients.length && (isOnlySome || said.length > 0);
  return { names, all, whose, clients, asked, count, barred, said, isOnlySome, byClient };
}

/** Signs that the refusals have in common, each null or false if it does not apply. */
interface Signs {
  /** Upstreams that send them. */
  readonly causes: readonly ServerView[];
  readonly pods: Refusers | null;
  readonly server: string;
  readonly ofUpstream: Refusers | null;
  /** The refusals of names that are answered at other times. */
  readonly ofThese: number;
  readonly alone: readonly string[] | null;
  readonly own: Observations['failed'];
  readonly stub: string | null;
  readonly rule: RefusalRule | null;
  readonly isAll: boolean;
  readonly isLimit: boolean;
  readonly zone: string | null;
}

function signsOf(observed: Observations, refusals: Refusals): Signs {
  const { names, all, clients, count, barred, isOnlySome, byClient } = refusals;
  const behind = upstreams(observed);
  const causes = observed.servers.list.filter(
    ({ address, outcomes }) =>
      behind.has(address) && outcomes.refused >= FROM_UPSTREAM_SHARE * count,
  );
  const pods = causes.length > 0 || byClient ? null : refusingPods(observed, names);
  const [worst] = (causes.length > 0 ? causes : observed.servers.list).toSorted(
    (one, other) => other.outcomes.refused - one.outcomes.refused,
  );
  const server = pods?.refusing[0] ?? worst?.address ?? 'the server';
  const ofUpstream = causes.length > 0 ? refusedClients(observed, server, names) : null;
  // A server without the zone never answers for it.
  const atTimes = names.filter(({ outcomes: { found, nodata } }) => found + nodata > 0);
  const ofThese = atTimes.reduce((sum, { outcomes }) => sum + outcomes.refused, 0);
  const isByChance =
    !byClient && causes.length === 0 && pods === null && ofThese >= REFUSED_AT_TIMES * all;
  const alone = soleRefuser(observed, clients, server);
  const own = observed.failed.filter(
    (each) => each.rcode === RCODE.REFUSED && each.server.address === server,
  );
  const stub = byClient || own.length === 0 ? null : stubZone(observed, server, own);
  const rule = byClient || causes.length > 0 || pods !== null ? null : refusalRule(observed, names);
  const isAll =
    !byClient &&
    barred.length === clients.length &&
    !isOnlySome &&
    causes.length === 0 &&
    rule === null &&
    alone === null &&
    ofThese === 0 &&
    new Set(names.map(({ name }) => name)).size >= MIN_REFUSED_NAMES;
  const isLimit = isByChance && rule === null && alone === null;
  const zone =
    byClient || isLimit || alone !== null || rule !== null || pods !== null
      ? null
      : zoneOf(observed, names);
  const [from, by] = [
    { causes, pods, server, ofUpstream },
    { alone, own, stub, rule },
  ];
  return { ...from, ...by, ofThese, isAll, isLimit, zone };
}

/** The most specific cause that these signs show. */
function causeOf(
  observed: Observations,
  { names, all, clients, byClient }: Refusals,
  signs: Signs,
  late: readonly string[],
): RefusalCause {
  const { causes, pods, server, ofUpstream, ofThese, alone, own } = signs;
  const { stub, rule, isAll, isLimit, zone } = signs;
  const causesInOrder: readonly (RefusalCause | false)[] = [
    byClient && refusalCauses.byClient(),
    isAll && refusalCauses.all(server),
    ofUpstream !== null && refusalCauses.someClients(server, ofUpstream),
    stub !== null && refusalCauses.stub(stub, server, own),
    rule !== null && refusalCauses.rule(observed, rule),
    alone !== null && refusalCauses.alone(server, alone),
    zone !== null && refusalCauses.zone(zone, names[0]!.name),
    pods !== null && refusalCauses.somePods(pods),
    causes.length > 0 && refusalCauses.upstreams(causes),
    isLimit &&
      limitCause(observed, {
        ...{ clients, server, names, late },
        part: share(ofThese, all),
      }),
    {
      seen: [],
      why: 'The server is not responsible for these names and does not forward them, because no server block, forward or zone matches them. Or it has reached its limit on waiting queries (max_concurrent in forward).',
      fix: [
        'Add a server block for these names, or forward them to a server that knows them.',
        'Raise forward { max_concurrent } if the server’s log says that the limit was reached.',
      ],
    },
  ];
  return causesInOrder.find((each) => each !== false)!;
}

/**
 * True for a name without a domain that ends a failed search: its searched forms are also queried, or the server fails
 * with SERVFAIL for others. It is the last step of such a lookup, and hardly any server has it.
 */
function endsFailedSearch(
  { name, servers }: NameView,
  { servers: all, backends, names, domains }: Observations,
): boolean {
  if (name.indexOf('.') < name.length - 1) return false;
  const isQueried = (each: string): boolean =>
    addressTypes.some((type) => names.get(each, type) !== undefined);
  if ([...domains.all].some((domain) => isQueried(name + domain))) return true;
  return [...servers].some(
    ([address, { refused: count }]) =>
      count > 0 &&
      [all.get(address), backends.get(address)].some(
        (view) => (view?.outcomes.servfail ?? 0) >= MIN_CASES,
      ),
  );
}

/**
 * The clients' other servers, if this one refuses (nearly) every query that it answers and the
 * others refuse none. Otherwise null.
 */
function soleRefuser(
  { servers }: Observations,
  clients: readonly ClientView[],
  server: string,
): readonly string[] | null {
  const own = servers.get(server)?.outcomes;
  if (own === undefined || own.refused < NEARLY_ALL * (own.asked - own.lost)) return null;
  const others = new Set(clients.flatMap((client) => [...client.servers.keys()]));
  if (!others.delete(server) || others.size === 0) return null;
  const isFine = (address: string): boolean => {
    const outcomes = servers.get(address)?.outcomes;
    return outcomes !== undefined && outcomes.found > 0 && outcomes.refused === 0;
  };
  return [...others].every(isFine) ? [...others] : null;
}

/**
 * The zone that all refused names are in, if none of them is ever answered while other external
 * names are. Otherwise null.
 */
function zoneOf(
  { names: { list }, domains }: Observations,
  refusedNames: readonly NameView[],
): string | null {
  if (refusedNames.length === 0) return null;
  const zone = refusedNames.map(({ name }) => name).reduce(commonZone);
  if (zone.split('.').length <= 2 || domains.isOfCluster(zone)) return null;
  if (refusedNames.some(({ outcomes }) => outcomes.found + outcomes.nodata > 0)) return null;
  const fine = new Set(
    list.flatMap(({ name, outcomes }) =>
      outcomes.found > 0 && !domains.isOfCluster(name) && !isBelow(name, zone) ? name : [],
    ),
  );
  return fine.size >= MIN_CASES ? zone : null;
}

/** The server that refuses these names most often, with the number of refusals. */
function mostBy(names: readonly NameView[], cause: string, count: number): string {
  const byServer = new Map<string, number>();
  for (const { servers } of names)
    for (const [server, { refused: of }] of servers)
      byServer.set(server, (byServer.get(server) ?? 0) + of);
  const [[most] = [cause]] = [...byServer].toSorted(([, one], [, other]) => other - one);
  const server = (byServer.get(cause) ?? 0) > 0 ? cause : most;
  return `${server} (${Math.min(count, byServer.get(server) ?? 0)})`;
}

/** The clients' lookups that were refused and did not find an address. */
function lookupsRefused({ affected }: Observations, clients: readonly ClientView[]): number {
  const theirs = new Set(clients.map(({ address }) => address));
  return affected.filter(
    ({ client, exchanges }) =>
      theirs.has(client) &&
      exchanges.some(({ rcode }) => rcode === RCODE.REFUSED) &&
      !exchanges.some(({ rcode, answers }) => rcode === RCODE.NOERROR && answers > 0),
  ).length;
}

/** True if a query of these clients was answered without an error. */
function hasAnswers(clients: readonly ClientView[]): boolean {
  return clients.some(({ outcomes: { found, nodata, nxdomain } }) => found + nodata + nxdomain > 0);
}

function sumOf(clients: readonly ClientView[], what: 'asked' | 'refused'): number {
  return clients.reduce((sum, { outcomes }) => sum + outcomes[what], 0);
}
