/** Names whose A is found, and whose AAAA is an error. */
import { oddFamilies } from '../cluster/families.ts';
import { RCODE, rcodeName, TYPE } from '../../../server/wire/iana.ts';
import type { Observations } from '../observe/observations.ts';
import { answered, noOutcomes, wrong, type Outcomes } from '../observe/outcomes.ts';
import { excluded, unknown, type FoundCause, type FindingKind, notAsked } from './finding.ts';
import { listed } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { registeredDomainOf } from '../observe/domain-of-name.ts';
import { pairsText } from '../observe/mixed-names.ts';
import { isForwarder, upstreams } from '../observe/roles.ts';
import { isAtOnce } from '../observe/name-view.ts';
import { latencyOf, sentSpan } from '../../capture/pair/seen-exchange.ts';
import { A_FAILURES, SURE_AAAA_ERRORS } from '../thresholds/answers.ts';
import {
  LONG_WAIT_MS,
  MIN_CASES,
  MIN_LASTING_MS,
  MOST,
  NEARLY_ALL,
  SURE_RESOLVER,
} from '../thresholds/evidence.ts';

export const wrongAaaa: FindingKind = {
  code: 'ND8002',
  title: 'AAAA queries get an error for names that exist',
  name: 'AAAA queries that get an error',
  inCapture(observed, claims) {
    const bads = wrongNames(observed, claims);
    const both = observed.names.list.some(
      ({ type, name, outcomes }) =>
        type === TYPE.AAAA &&
        outcomes.asked > 0 &&
        (observed.names.get(name, TYPE.A)?.outcomes.found ?? 0) > 0,
    );
    if (!both) return unknown('no name was found for which AAAA was also queried');
    const bad = bads.reduce((sum, each) => sum + each.bad, 0);
    const names = bads.map(({ name }) => name);
    const keys = new Set(names);
    // With few queries, only AAAA may fail by chance.
    if (zoneFailsForA(observed, names))
      return excluded('A queries also fail for other names in these zones');
    if (bads.length === 0 || bad < 2) return excluded(pairsText(observed));
    if (failsForA(observed, claims, keys)) return excluded('A queries also fail at that time');
    const rcode = bads[0]!.rcode;
    // Losses delay every lookup, and only musl fails because of a denied type.
    const isMinor =
      rcode === 'NXDOMAIN' && (observed.types.get(TYPE.A)?.lost ?? 0) > 0 && !hasMusl(observed);
    const isLate = names.every((name) => waitsForReply(observed, name));
    const origin = originOf(observed, names, isLate);
    // Failures of these are expected.
    for (const name of [...names, ...failingAlike(observed)]) claims.names.add(name);
    return {
      severity: isMinor ? 'warning' : 'critical',
      confidence: isLate ? 0.75 : bads.length >= 2 || bad >= SURE_AAAA_ERRORS ? 0.93 : 0.8,
      seen: [
        `For ${listed(names)}, A queries get an address, but AAAA queries get ${rcode} (${bad} times).`,
        isLate &&
          'These errors come after a second or more, or from a cache, so the DNS server waits for another one that does not reply.',
        ...origin.seen,
      ],
      why:
        rcode === 'NXDOMAIN'
          ? `NXDOMAIN means that the name does not exist for any type. ${origin.why} musl (Alpine) then ignores the IPv4 address, and caches may do so, too.`
          : isLate
            ? 'The upstream, or the servers for these names, do not reply to AAAA. Either something drops this type, or they do not reply at all, and A is answered from a cache (perhaps with expired records). musl (Alpine) fails after 5 s although it has the IPv4 address, while others retry and lose time.'
            : 'AAAA queries fail instead of getting "no such record", because old load balancers and appliances do not know the type (RFC 4074). musl (Alpine) fails after 5 s although it has the IPv4 address, while others retry and lose time.',
      fix: [
        isLate &&
          'Query A and AAAA of such a name at the upstream from a DNS pod’s node. If neither is answered, the servers for the name are the cause. If only A is, allow AAAA in the firewall or on those servers.',
        ...origin.fix,
      ],
      prove: `ndots query ${names[0]} AAAA${origin.server === '' ? '' : ` @${origin.server}`}`,
      disproved: origin.disproved,
      hits: bad,
      exchanges: observed.affectedExchanges(
        ({ name, type }) => keys.has(name) && type === TYPE.AAAA,
      ),
    };
  },
  inCluster(facts) {
    const { answers } = facts;
    if (answers === null) return notAsked;
    const odd = oddFamilies(
      answers,
      facts,
      ({ a, aaaa }) =>
        a.outcome === 'NOERROR' &&
        ['SERVFAIL', 'REFUSED', 'NOTIMP', 'FORMERR'].includes(aaaa.outcome),
    );
    if (odd === 'unasked') return unknown('A and AAAA could not be queried at any server');
    if (odd === 'none') return excluded('AAAA queries for existing names get no errors');
    return {
      severity: 'critical',
      ...odd,
      confidence: 0.93,
      why: 'A template or a rule against IPv6 answers with an error. For musl (Alpine), the whole name then fails, while other resolvers keep retrying.',
      fix: [
        'Use template IN AAAA { rcode NOERROR; authority "… SOA …"; fallthrough }, or remove the rule, since AAAA queries cost little with a cache.',
      ],
    };
  },
};

/** Names whose AAAA is an error every time, or from or up to some moment, while A is always found. */
function wrongNames(
  observed: Observations,
  claims: Claims,
): readonly { readonly name: string; readonly rcode: string; readonly bad: number }[] {
  return observed.names.list.flatMap(({ name, type, outcomes, denial }) => {
    if (type !== TYPE.AAAA || claims.names.has(name)) return [];
    const a = observed.names.get(name, TYPE.A)?.outcomes;
    // If A also fails at times, two servers differ.
    if (a === undefined || a.found === 0 || errors(a) > 0) return [];
    const bad = errors(outcomes);
    const inRow = denial?.count ?? 0;
    const isAlways = bad >= answered(outcomes);
    if (bad === 0 || inRow < (isAlways ? bad : NEARLY_ALL * bad)) return [];
    if (!isAlways && inRow < MIN_CASES) return [];
    const [rcode = rcodesOf(observed, name)] = (['nxdomain', 'servfail', 'refused'] as const)
      .filter((each) => outcomes[each] > 0)
      .map((each) => each.toUpperCase());
    return [{ name, rcode, bad }];
  });
}

/** The server that makes the wrong answer, as far as the capture shows it. */
interface Origin extends Pick<FoundCause, 'seen' | 'why' | 'fix' | 'disproved'> {
  /** The server that proves it; empty if none is known to be the cause. */
  readonly server: string;
}

const NO_RECORD =
  'Answer AAAA with NOERROR, no record, and an SOA in the authority section, as in template IN AAAA { rcode NOERROR; authority "…SOA…"; fallthrough }.';
const NO_TEMPLATE = 'Or remove the template, because NODATA from the upstream is just as quick.';
const TEMPLATE_WHY =
  'A template that is meant to suppress IPv6 may answer like this (template … rcode NXDOMAIN).';

/** Queries that were denied or failed. */
function errors({ nxdomain, servfail, refused, error }: Outcomes): number {
  return nxdomain + servfail + refused + error;
}

function originOf(observed: Observations, names: readonly string[], isLate: boolean): Origin {
  const views = names.flatMap((name) => observed.names.get(name, TYPE.AAAA) ?? []);
  const answers = views.flatMap(({ servers }) => [...servers]);
  const isForwardedTo = forwardedTo(observed);
  const behind = answers.filter(([address]) => isForwardedTo(address));
  const guiltyOf = (list: typeof answers): readonly string[] => [
    ...new Set(list.flatMap(([address, outcomes]) => (errors(outcomes) > 0 ? address : []))),
  ];
  const guilty = guiltyOf(behind);
  const zones = listed(names.map(registeredDomainOf));
  const owner = `Tell the owner of ${zones} that the zone’s servers answer AAAA with an error although an A record exists. They have to answer NOERROR without a record, with the zone’s SOA record (RFC 4074).`;
  const locally =
    'Until then, answer AAAA for these names at the DNS server, as in template IN AAAA ZONE { rcode NOERROR; authority "…SOA…"; fallthrough }.';
  if (guilty.length > 0)
    return {
      server: guilty[0]!,
      seen: [
        `The upstream ${listed(guilty)} gives this answer itself, so the DNS server in front of it only passes it on.`,
      ],
      why: `${listed(guilty)} passes it on from the zone’s own servers, which do not know the type, or makes it itself.`,
      fix: [
        `Query AAAA at ${listed(guilty)} and at the zone’s own servers. Correct the first one that answers with an error.`,
        owner,
        locally,
      ],
      disproved: `${listed(guilty)} answers AAAA with NOERROR`,
    };
  const [own] = guiltyOf(answers);
  if (names.every((name) => observed.domains.isOfCluster(name)))
    return {
      server: own ?? '',
      seen: [],
      why: TEMPLATE_WHY,
      fix: [NO_RECORD, NO_TEMPLATE],
      disproved: 'no template, rewrite or rule matches AAAA for these names',
    };
  return {
    server: '',
    seen: [],
    why: 'Either the zone’s own servers do not know the type and the upstream passes their answer on, or a template that is meant to suppress IPv6 makes it (template … rcode NXDOMAIN).',
    fix: [
      `Query AAAA at the DNS server’s upstream, which the capture does not show. If it gives the same answer, ${owner.replace(/^T/, 't')}`,
      // A template answers at once.
      !isLate && `If not, a template or rule makes the answer. ${NO_RECORD} Or remove it.`,
    ],
    disproved: 'AAAA gets NOERROR',
  };
}

/** Tests for servers that other DNS servers forward to: upstreams, or servers with forwarders as their only clients. */
function forwardedTo(observed: Observations): (address: string) => boolean {
  const behind = upstreams(observed);
  return (address) => {
    if (behind.has(address)) return true;
    const clients = [...(observed.servers.get(address)?.clients ?? [])];
    return clients.length > 0 && clients.every((client) => isForwarder(observed, client));
  };
}

/**
 * True if A of other names fails about as often during this time: then it does not depend on the
 * type.
 */
function failsForA(
  { failed, types }: Observations,
  claims: Claims,
  names: ReadonlySet<string>,
): boolean {
  const own = failed.filter(({ name, type }) => type === TYPE.AAAA && names.has(name));
  // Denials (NXDOMAIN) are not stored, nor are failures beyond a limit.
  if (own.length === 0) {
    const { servfail, refused, error } = types.get(TYPE.A) ?? noOutcomes();
    // Loss makes no server deny a name.
    return servfail + refused + error > 0;
  }
  const { fromMs, toMs } = sentSpan(own);
  // One event, seen at several places: chance picks one type.
  const isMoment = toMs - fromMs < MIN_LASTING_MS;
  // A limit that was reached, or a rule, refuses at any time.
  const isRefused = own.every(({ rcode }) => rcode === RCODE.REFUSED);
  const ofA = failed.filter(
    ({ name, type, sentMs, rcode }) =>
      type === TYPE.A &&
      ((isRefused && rcode === RCODE.REFUSED) ||
        isMoment ||
        (sentMs >= fromMs && sentMs <= toMs)) &&
      !claims.names.has(name),
  );
  return ofA.length >= A_FAILURES * own.length;
}

/**
 * True if AAAA of the name fails only after a long wait, or from a cache. Then no server answers
 * AAAA with an error. If the address comes from a cache, the servers may not answer A, either.
 */
function waitsForReply({ failed }: Observations, name: string): boolean {
  const fresh = failed.filter(
    (each) => each.type === TYPE.AAAA && each.name === name && !isAtOnce(each),
  );
  const late = fresh.filter((each) => (latencyOf(each) ?? 0) >= LONG_WAIT_MS);
  return late.length > 0 && late.length >= MOST * fresh.length;
}

function hasMusl({ clients }: Observations): boolean {
  return clients.list.some(({ recognition }) => {
    const { best } = recognition;
    return best?.kind === 'musl' && best.confidence >= SURE_RESOLVER;
  });
}

/** True if other names in these zones also fail for A, so the zone is at fault. */
function zoneFailsForA({ names, domains }: Observations, bads: readonly string[]): boolean {
  const zones = new Set(
    names.list.flatMap(({ name, type, outcomes: { servfail, refused } }) =>
      type === TYPE.A && servfail + refused > 0 && !domains.isOfCluster(name)
        ? registeredDomainOf(name)
        : [],
    ),
  );
  return bads.length > 0 && bads.every((name) => zones.has(registeredDomainOf(name)));
}

/** The errors that AAAA of a name is answered with. */
function rcodesOf({ failed }: Observations, name: string): string {
  const theirs = failed.filter((each) => each.type === TYPE.AAAA && each.name === name);
  return [...new Set(theirs.map(({ rcode }) => rcodeName(rcode)))].join(' or ') || 'an error';
}

/** Names of which AAAA fails and A does not, even if there is no A record. */
function failingAlike({ names }: Observations): readonly string[] {
  return names.list.flatMap(({ name, type, outcomes }) => {
    const a = names.get(name, TYPE.A)?.outcomes;
    return type === TYPE.AAAA && wrong(outcomes) > 0 && a !== undefined && wrong(a) === 0
      ? name
      : [];
  });
}
