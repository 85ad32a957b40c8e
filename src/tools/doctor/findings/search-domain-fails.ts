/** Search domains that fail for every name under them. */
import { outcome } from '../../probe/probe-queries.ts';
import { RCODE, rcodeName, TYPE } from '../../../server/wire/iana.ts';
import { explainLate } from '../observe/consequences.ts';
import type { Observations } from '../observe/observations.ts';
import { isCut } from '../../capture/pair/message-head.ts';
import { isLost, sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { addOutcomes, noOutcomes, wrong, type Outcomes } from '../observe/outcomes.ts';
import { deadNames } from '../observe/dead-names.ts';
import { goByEdns } from '../observe/edns-losses.ts';
import { failingWalks } from '../observe/failing-walks.ts';
import {
  excluded,
  unknown,
  type FoundCause,
  type OptionalText,
  type FindingKind,
  notAsked,
  noSuffix,
} from './finding.ts';
import { clock, fromTo, keysOf, listed, sentence, share } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { isServer, upstreams } from '../observe/roles.ts';
import { domainsOf, makes, searchDomainOf } from '../observe/search-domains.ts';
import { FELT_SHARE, MIN_CASES, MOST } from '../thresholds/evidence.ts';
import {
  COMPARED_LOSSES,
  FAILING_DOMAIN,
  MANY_STOPPED_LOOKUPS,
  MAX_OTHER_LOSSES,
} from '../thresholds/search.ts';

export const searchDomainFails: FindingKind = {
  code: 'ND2003',
  title: 'A search domain that lookups try first fails for every name',
  name: 'a search domain that fails',
  inCapture(observed, claims) {
    if (observed.domains.all.size === 0) return unknown('no search path was seen');
    for (const domain of domainsOf(observed)) {
      const sum = noOutcomes();
      const names: string[] = [];
      const isBelow = makes(domain, observed);
      for (const { name, outcomes } of observed.names.list) {
        if (!isBelow(name)) continue;
        names.push(name);
        addOutcomes(sum, outcomes);
      }
      const bad = wrong(sum);
      const rest = observed.total.asked - sum.asked;
      const restBad = wrong(observed.total) - bad;
      if (
        names.length < 2 ||
        bad < FAILING_DOMAIN.queries ||
        bad < FAILING_DOMAIN.share * sum.asked ||
        rest === 0 ||
        restBad > FAILING_DOMAIN.elsewhere * rest
      )
        continue;
      const own = new Set(names);
      if (outsideFails(observed, own) || outsideFailsMeanwhile(observed, own, sum)) continue;
      // An upstream that does not know EDNS fails for no other clients (ND4009).
      if (sum.error >= MOST * bad && areMisread(observed, own)) continue;
      const losses = claims.open.filter(({ name }) => own.has(name));
      // Losses with another cause say nothing about the domain.
      if (sum.lost >= 0.5 * bad && losses.length < 0.5 * Math.min(sum.lost, COMPARED_LOSSES))
        continue;
      if (othersGoToo(observed, losses, own)) continue;
      if (losses.length > 0 && goByEdns(observed, losses)) continue;
      claims.take(losses);
      explainLate(observed, claims, losses);
      for (const name of names) claims.names.add(name);
      const exchanges = observed.affectedExchanges(({ name }) => names.includes(name));
      const errors = keysOf(
        observed.failed.filter(({ name }) => own.has(name)),
        ({ rcode }) => rcodeName(rcode),
      );
      const what = sum.lost >= 0.5 * bad ? 'no reply' : (errors[0] ?? 'SERVFAIL');
      return {
        ...told(domain, (losses[0] ?? exchanges[0])?.server.address),
        seen: [
          sentence(
            `${share(bad, sum.asked)} queries under the search domain ${domain} got ${what}. They are for ${listed([...own])}`,
          ),
          failingUpstream(observed, own),
          stoppedAt(observed, own),
          `Of all other queries, ${share(restBad, rest)} failed.`,
        ],
        exchanges: losses.length > 0 ? losses : exchanges,
      };
    }
    return (
      fromSomeMomentOn(observed, claims) ??
      atTimes(observed, claims) ??
      excluded('no search domain fails for (nearly) all names, or other names also fail')
    );
  },
  inCluster({ answers }) {
    if (answers === null) return notAsked;
    const { suffixes } = answers;
    if (suffixes.size === 0) return noSuffix;
    const found = [...suffixes].filter(
      ([, replies]) => replies.odd !== null && replies.wildcard.length === 0,
    );
    if (found.length === 0) return excluded('missing names under search domains are NXDOMAIN');
    return {
      severity: found.some(([suffix]) => suffix.startsWith('svc.')) ? 'critical' : 'warning',
      confidence: 0.9,
      seen: found.map(
        ([suffix, replies]) =>
          `${replies.random} gets ${outcome(replies.odd!, TYPE.A)} instead of NXDOMAIN, like all names under ${suffix}`,
      ),
      affected: ['pods with this domain in their search path'],
      why: 'Each lookup tries this domain. musl (Alpine) fails there, while glibc and Go wait or retry before they continue.',
      fix: ['Remove the domain from the search path, or make its server answer NXDOMAIN.'],
      prove: `ndots query ${found[0]![1].random}`,
      disproved: 'a repeated query gets NXDOMAIN (then its server was only briefly down)',
    };
  },
};

/** True if the errors are FORMERR or NOTIMP, and all clients that get them use EDNS. */
function areMisread({ failed, clients }: Observations, own: ReadonlySet<string>): boolean {
  const errors = failed.filter(({ name }) => own.has(name));
  return errors.every(({ rcode, client }) => {
    const view = clients.get(client.address);
    return (
      (rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP) &&
      view !== undefined &&
      view.withEdns >= view.outcomes.asked
    );
  });
}

/** Names the upstreams that these failures come from; empty if the capture shows only one server. */
function failingUpstream(observed: Observations, own: ReadonlySet<string>): OptionalText {
  const behind = upstreams(observed);
  const servers = new Set(
    observed.names.list
      .filter(({ name }) => own.has(name))
      .flatMap(({ servers: all }) =>
        [...all].flatMap(([server, each]) => (behind.has(server) && wrong(each) > 0 ? server : [])),
      ),
  );
  return servers.size > 0 && `The failures come from the upstream ${listed([...servers])}.`;
}

/** Clients whose lookups end at the domain, without the rest of the search path. */
function stoppedAt(observed: Observations, own: ReadonlySet<string>): OptionalText {
  const ended = observed.affected.filter(
    ({ client, candidates }) => !isServer(observed, client) && own.has(candidates.at(-1)!),
  );
  const byClient = Map.groupBy(ended, ({ client }) => client);
  const clients = [...byClient].flatMap(([client, all]) => (all.length >= 2 ? client : []));
  if (clients.length === 0) return false;
  const kinds = clients.map((client) => observed.clients.get(client)?.recognition.best?.kind);
  const isMusl = kinds.includes('musl');
  return `The lookups of ${listed(clients)} end there, and the rest of the search path is never tried${isMusl ? ' (musl, as in Alpine, gives up at an error, while glibc and Go continue)' : ''}.`;
}

/** A search domain whose names are not answered from some moment on, while others are. */
function fromSomeMomentOn(observed: Observations, claims: Claims): FoundCause | null {
  for (const dead of deadNames(observed, claims.open)) {
    const domain = searchDomainOf(dead, observed);
    if (domain === null) continue;
    const { server, losses, names, answered } = dead;
    claims.take(losses);
    claims.take(dead.cut);
    explainLate(observed, claims, losses);
    for (const name of names) claims.names.add(name);
    return {
      ...told(domain, server),
      confidence: 0.9,
      seen: [
        sentence(
          `From ${clock(sentSpan(losses).fromMs)} on, none of ${losses.length} queries under the search domain ${domain} got a reply. They are for ${listed(names)}`,
        ),
        `During this time, ${server} answered ${answered.length} names outside that domain.`,
      ],
      exchanges: losses,
    };
  }
  return null;
}

/** A search domain whose names fail at times, while others that go the same way are answered. */
function atTimes(observed: Observations, claims: Claims): FoundCause | null {
  for (const domain of domainsOf(observed)) {
    const found = failingWalks(observed, claims, makes(domain, observed));
    if (found === null) continue;
    const { failures, names, lookups, goOn } = found;
    const losses = claims.open.filter(({ name }) => names.has(name));
    claims.take(losses);
    for (const name of names) claims.names.add(name);
    const { fromMs, toMs } = sentSpan(failures);
    const lost = failures.filter(isLost).length;
    const [first] = failures;
    const what =
      lost >= 0.5 * failures.length
        ? 'no reply'
        : rcodeName(failures.find(({ rcode }) => rcode > 0)!.rcode);
    const seconds = new Set(failures.map(({ sentMs }) => Math.floor(sentMs / 1000)));
    const inside = told(domain, first!.server.address);
    return {
      ...inside,
      severity: failures.length >= FELT_SHARE * observed.total.asked ? 'critical' : 'warning',
      confidence: goOn >= MANY_STOPPED_LOOKUPS ? 0.88 : 0.76,
      seen: [
        sentence(
          `${failures.length} queries in ${lookups} lookups under the search domain ${domain} got ${what}, in ${seconds.size === 1 ? 'one second' : `${seconds.size} of the seconds`} ${fromTo(fromMs, toMs)}. They are for ${listed([...names])}`,
        ),
        `${goOn} of these lookups continued with the name without that domain, which was answered. (Nearly) no queries fail outside the domain.`,
      ],
      why: `The server for ${domain} fails at times, while those for other names do not. ${inside.why}`,
      exchanges: failures,
    };
  }
  return null;
}

function told(domain: string, server = 'SERVER'): Omit<FoundCause, 'seen' | 'exchanges'> {
  return {
    severity: 'critical',
    confidence: 0.95,
    why: 'One of the pods’ search domains has no working server (pods inherit their node’s search domains). Each lookup of a name with few dots tries it, and programs time out there or give up. musl (Alpine) and c-ares fail, while glibc and Go lose time.',
    fix: [
      `Remove ${domain} from the nodes’ resolv.conf, or give kubelet another file (--resolv-conf).`,
      `Or answer the domain in the cluster with ${domain.slice(0, -1)}:53 { template ANY ANY { rcode NXDOMAIN } } in the Corefile.`,
    ],
    prove: `ndots query nothing.${domain} @${server}`,
    disproved: `a missing name under ${domain} gets NXDOMAIN immediately`,
  };
}

/** True if external names also fail, so the upstream fails for all queries. */
function outsideFails({ names, domains }: Observations, below: ReadonlySet<string>): boolean {
  const outside = names.list.filter(({ name }) => !below.has(name) && !domains.isOfCluster(name));
  const asked = outside.reduce((sum, { outcomes }) => sum + outcomes.asked, 0);
  const bad = outside.reduce((sum, { outcomes }) => sum + wrong(outcomes), 0);
  return bad >= MIN_CASES && bad > 0.5 * asked;
}

/**
 * True if external names also fail at the same time. Cluster names and earlier successes say
 * nothing about the domain.
 */
function outsideFailsMeanwhile(
  { failed, losses, ways }: Observations,
  below: ReadonlySet<string>,
  own: Outcomes,
): boolean {
  const times = [...failed, ...losses].flatMap(({ name, sentMs }) =>
    below.has(name) ? sentMs : [],
  );
  const fromMs = times.reduce((least, ms) => Math.min(least, ms), Infinity);
  const toMs = times.reduce((most, ms) => Math.max(most, ms), -Infinity);
  const { outside } = ways.between(fromMs, toMs);
  const others = wrong(outside) - wrong(own);
  return (
    others >= MIN_CASES && others > MAX_OTHER_LOSSES * Math.max(others, outside.asked - own.asked)
  );
}

/**
 * True if other external names are lost at the same time, so the upstream loses all queries from
 * some moment on.
 */
function othersGoToo(
  { losses, domains }: Observations,
  own: readonly SeenExchange[],
  names: ReadonlySet<string>,
): boolean {
  const { fromMs, toMs } = sentSpan(own);
  const others = losses.filter(
    ({ name, sentMs }) =>
      sentMs >= fromMs &&
      sentMs <= toMs &&
      !names.has(name) &&
      // A name that is cut off may also be under the domain.
      !isCut(name) &&
      !domains.isOfCluster(name),
  );
  return others.length >= MIN_CASES && others.length > MAX_OTHER_LOSSES * own.length;
}
