/** A flood of names below one domain, each queried once, so that no cache helps. */
import { TYPE } from '../../../server/wire/iana.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import { blockListTest } from '../observe/block-lists.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { addOutcomes, noOutcomes, wrong, type Outcomes } from '../observe/outcomes.ts';
import { floodSender } from '../observe/name-flood.ts';
import { isServer } from '../observe/roles.ts';
import { listed, percent, share, tally } from '../texts.ts';
import { MIN_QUERIES, OUTAGE_SHARE } from '../thresholds/evidence.ts';
import {
  ABSENT_SHARE,
  DOMAIN_SHARE,
  EXISTING_SHARE,
  MADE_UP,
  MIN_ABSENT_QUERIES,
  SAME_HOST_SHARE,
} from '../thresholds/search.ts';
import { excluded, unknown, type FindingKind, type OptionalText } from './finding.ts';

const ARPA = /\.arpa\.$/;

/** Codes of limits that a flood exceeds: source ports, a packet limit, and a server’s rate limit. */
const LIMITS = ['ND3024', 'ND4001', 'ND4045'];

/** Longer numbers are identifiers. */
const SHORT_NUMBER = /(?<!\d)\d{1,4}(?!\d)/g;

/** A program queries a constant stream of new names below one domain (water torture, cache busting, a tunnel). */
export const madeUpNames: FindingKind = {
  code: 'ND2018',
  title: 'A client floods one domain with random names, which no cache can answer',
  name: 'a flood of random names',
  inCapture(observed, claims) {
    const { total, seconds } = observed;
    if (total.asked < MIN_QUERIES) return unknown('too few queries');
    const external = externalNames(observed);
    const domain = domainOf([...external.keys()]);
    if (domain === null) return excluded('no domain has many names that are queried only once');
    const flood = [...external].flatMap(([name, views]) => (isBelow(name, domain) ? [views] : []));
    const all = noOutcomes();
    for (const view of flood.flat()) addOutcomes(all, view.outcomes);
    const isOften = flood.length >= MADE_UP.perSecond * seconds;
    const isAgain = all.asked > MADE_UP.queriesEach * flood.length;
    if (!isOften || isAgain || areHosts(flood.flat()) || areNumbered(flood, domain))
      return excluded(`the names below ${domain} belong to hosts, or are queried repeatedly`);
    const askers = tally(
      flood.flatMap((views) => [...new Set(views.flatMap((view) => view.lastClients))]),
      (client) => client,
    );
    const clients = askers.filter(([client]) => !isServer(observed, client));
    const [[most, asked]] = (clients.length > 0 ? clients : askers) as [[string, number]];
    const sender = floodSender(observed, most, flood);
    const isPassedOn = sender === 'server';
    const bad = wrong(all);
    const rest = total.asked - all.asked;
    const restBad = wrong(total) - bad;
    const isHarmful = bad >= OUTAGE_SHARE * all.asked || restBad >= OUTAGE_SHARE * rest;
    // If nothing else suffers, these are simply names that do not exist (ND2008).
    if (!isHarmful && isMostlyAbsent(observed)) return excluded('these names get NXDOMAIN at once');
    if (!isHarmful && all.asked < MADE_UP.harmless * total.asked)
      return excluded(`the names below ${domain} are few among all queries, and cause no failures`);
    if (!isHarmful && flood.length < MADE_UP.harmlessPerSecond * seconds)
      return excluded(`the few names a second below ${domain} do no harm`);
    const losses = claims.open.filter(({ name }) => isBelow(name, domain));
    const isReal = doExist(flood);
    claims.flood = { domain, names: flood.length, client: most, isPassedOn, isReal, losses };
    // Names that exist are answered, so these queries fail for another reason.
    if (!isReal) {
      claims.take(losses);
      for (const [view] of flood) claims.names.add(view!.name);
    }
    const exchanges = observed.affectedExchanges(({ name }) => isBelow(name, domain));
    return {
      title: titleOf(isReal, isPassedOn),
      triggers: LIMITS,
      severity: isHarmful && !isReal ? 'critical' : 'warning',
      confidence: 0.95,
      seen: [
        `${flood.length} different names below ${domain} were queried (${(flood.length / Math.max(1, seconds)).toFixed(0)} a second), each about once. They include ${listed(flood.map(([view]) => view!.name))}`,
        isPassedOn
          ? `${percent(asked, flood.length)} of these names came through ${most}, which passes on its clients’ queries. This capture does not show the client behind it.`
          : `${most} queried ${percent(asked, flood.length)} of these names.`,
        `${share(all.asked, total.asked)} queries were for such names. Of these, ${fates(all)}.`,
        restBad > 0 && `Of all other queries, ${share(restBad, rest)} failed.`,
      ],
      why: isReal
        ? `Names below ${domain} exist, so a program visits many hosts there, as a crawler or a mail server does. Each name is new to the caches, so each query waits for the upstream. Together they may exceed a limit on the path or at the upstream, and then other pods’ external names fail as well.`
        : `A program invents names below ${domain}. It may be a scanner, an attack on the domain’s servers (water torture), a program that bypasses caches, or a tunnel. No cache has these names, so each query waits for the upstream. When the servers of ${domain} are slow or silent, the waiting queries use up the DNS pods’ limits (max_concurrent, sockets), so other pods’ external names fail as well.`,
      fix: fixOf(domain, most, sender, isReal),
      prove: isPassedOn
        ? `run tcpdump -ni any port 53 on that server and look for ${domain}`
        : `ndots capture --from-ip ${most} shows each name below ${domain} only once`,
      disproved: isReal
        ? `the names below ${domain} do not exist (then a program invents them)`
        : `the names below ${domain} belong to real hosts that a program has to visit`,
      exchanges: exchanges.length > 0 ? exchanges : losses,
      ...(exchanges.length + losses.length > 0 ? {} : { affected: [most] }),
    };
  },
};

/** External names without those of the search path, of reverse lookups and of block lists. */
function externalNames({ names, domains }: Observations): ReadonlyMap<string, readonly NameView[]> {
  const isOfList = blockListTest(names.list);
  return Map.groupBy(
    names.list.filter(
      ({ name, type }) =>
        type !== TYPE.PTR &&
        !ARPA.test(name) &&
        !isOfList(name) &&
        !domains.isOfCluster(name) &&
        domains.domainOf(name) === null,
    ),
    ({ name }) => name,
  );
}

function titleOf(isReal: boolean, isPassedOn: boolean): string {
  return isReal
    ? 'A client queries very many different names, which no cache can answer'
    : isPassedOn
      ? 'A flood of random names below one domain, which no cache can answer'
      : madeUpNames.title;
}

function fixOf(
  domain: string,
  most: string,
  sender: ReturnType<typeof floodSender>,
  isReal: boolean,
): readonly OptionalText[] {
  return [
    sender === 'server'
      ? `To find the client, capture in front of ${most} and look for ${domain}`
      : sender === 'unknown'
        ? `Find what has the address ${most} (kubectl get pods -A -o wide). If it is a DNS pod or a node cache, capture in front of it to find its client. Otherwise slow down or stop the program.`
        : `Find the pod that has the address ${most} (kubectl get pods -A -o wide) and slow down or stop the program.${isReal ? '' : ' If it has no known owner, treat it as an intrusion.'}`,
    !isReal &&
      `Until then, answer ${domain} in the cluster with a separate server block: ${domain.slice(0, -1)} { template ANY ANY { rcode NXDOMAIN } }.`,
    'Limit the query rate of each client, and give internal and external names separate forward limits.',
  ];
}

/** The longest domain that contains most names of the zone with the most names; null if it has few. */
function domainOf(all: readonly string[]): string | null {
  const counts = new Map<string, number>();
  for (const name of all)
    for (
      let at = name.indexOf('.') + 1;
      at > 0 && at < name.length;
      at = name.indexOf('.', at) + 1
    ) {
      const domain = name.slice(at);
      counts.set(domain, (counts.get(domain) ?? 0) + 1);
    }
  const zones = [...counts].filter(([domain]) => domain.indexOf('.') < domain.length - 1);
  const most = zones.reduce((max, [, count]) => Math.max(max, count), 0);
  if (most < MADE_UP.names || most < MADE_UP.share * all.length) return null;
  const [longest] = zones
    .filter(([, count]) => count >= DOMAIN_SHARE * most)
    .toSorted(([one], [other]) => other.length - one.length);
  return longest![0];
}

function isMostlyAbsent({ absent, total }: Observations): boolean {
  return absent.queries >= Math.max(MIN_ABSENT_QUERIES, ABSENT_SHARE * total.asked);
}

/** True if the names differ only in short numbers, as those of hosts or customers do. */
function areNumbered(flood: readonly (readonly NameView[])[], domain: string): boolean {
  const forms = flood.map(([view]) =>
    view!.name.slice(0, -domain.length).replace(SHORT_NUMBER, ''),
  );
  return new Set(forms).size < SAME_HOST_SHARE * flood.length;
}

/** True if many of the names have an address, so that a program does not invent them. */
function doExist(flood: readonly (readonly NameView[])[]): boolean {
  const found = flood.filter((views) => views.some(({ addresses }) => addresses.length > 0));
  const denied = flood.filter((views) => views.some(({ outcomes }) => outcomes.nxdomain > 0));
  return found.length > 0 && found.length >= EXISTING_SHARE * (found.length + denied.length);
}

/** True if most of the names exist and have different addresses. */
function areHosts(views: readonly NameView[]): boolean {
  const found = views.filter(({ addresses }) => addresses.length > 0);
  if (found.length < SAME_HOST_SHARE * views.length) return false;
  const different = new Set(found.map(({ addresses }) => addresses.toSorted().join(' ')));
  return different.size > SAME_HOST_SHARE * found.length;
}

function fates(outcomes: Outcomes): string {
  const all = [
    ['lost', 'got no reply'],
    ['servfail', 'got SERVFAIL'],
    ['refused', 'got REFUSED'],
    ['nxdomain', 'got NXDOMAIN'],
    ['found', 'were answered'],
  ] as const;
  return all
    .filter(([kind]) => outcomes[kind] > 0)
    .map(([kind, text]) => `${share(outcomes[kind], outcomes.asked)} ${text}`)
    .join(', ');
}
