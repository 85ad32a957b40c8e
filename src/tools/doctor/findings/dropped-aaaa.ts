/** Queries for IPv6 addresses that get no reply, while those for the names' IPv4 addresses do. */
import { oddFamilies } from '../cluster/families.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import type { Observations } from '../observe/observations.ts';
import { addOutcomes, lossRate, noOutcomes, type Outcomes } from '../observe/outcomes.ts';
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { excluded, unknown, type FindingKind, notAsked } from './finding.ts';
import { keysOf, listed } from '../texts.ts';
import { staleTest } from '../observe/stale-domains.ts';
import { waitingForThese } from '../observe/consequences.ts';
import { NEARLY_ALL, SAME_MOMENT_MS, SPARED_SHARE } from '../thresholds/evidence.ts';
import {
  AAAA_NEVER_ANSWERED,
  AAAA_OTHERS_LOST,
  AAAA_SURPLUS,
  SOONEST_RETRY_MS,
  SURE_AAAA_LOSSES,
} from '../thresholds/transport.ts';

export const droppedAaaa: FindingKind = {
  code: 'ND3009',
  title: 'AAAA queries are dropped, while A queries for the same names are answered',
  name: 'AAAA queries that are dropped',
  inCapture(observed, claims) {
    const [a, aaaa] = [observed.types.get(TYPE.A), observed.types.get(TYPE.AAAA)];
    if (aaaa === undefined || a === undefined || a.asked === 0)
      return unknown('no A and AAAA queries for the same name were seen');
    if (aaaa.lost === 0) return excluded(`all ${aaaa.asked} AAAA queries are answered`);
    const isStale = staleTest(observed);
    const open = claims.open.filter(({ type }) => type === TYPE.AAAA);
    // An expired answer for A does not show that the domain's servers answer A.
    const stale = new Set(open.filter(({ name, server }) => isStale(name, server.address)));
    claims.take([...stale]);
    // Grouped by server: another server, which waits itself, may well answer the clients.
    const unanswered = Map.groupBy(
      open.filter((each) => {
        const since = observed.names.get(each.name, TYPE.AAAA)?.answeredMs.get(each.server.address);
        return !stale.has(each) && (since === undefined || each.sentMs > since);
      }),
      ({ name, server }) => `${name} ${server.address}`,
    );
    const victims = [...unanswered.values()].filter((queries) => isSpared(observed, queries));
    const again = victims.filter((queries) => {
      const { fromMs, toMs } = sentSpan(queries);
      return queries.length >= 2 && toMs - fromMs >= SOONEST_RETRY_MS;
    });
    const losses = victims.flat();
    const names = new Set(losses.map(({ name }) => name));
    if (again.length === 0 || losses.length < 2)
      return excluded('AAAA queries are answered when they are repeated');
    if (again.length < 1 + AAAA_SURPLUS * byChance(observed, lossRate(a)))
      return excluded('A queries are lost just as often, so the query type does not matter');
    const { fromMs, toMs } = sentSpan(losses);
    const besides = claims.open.filter(
      ({ type, sentMs }) => type === TYPE.A && sentMs >= fromMs - SAME_MOMENT_MS && sentMs <= toMs,
    );
    const alike = claims.open.filter(
      ({ type, sentMs }) => type === TYPE.AAAA && sentMs >= fromMs && sentMs <= toMs,
    );
    if (losses.length < AAAA_NEVER_ANSWERED * alike.length)
      return excluded('lost AAAA queries are answered when they are repeated');
    if (besides.length > AAAA_OTHERS_LOST * losses.length)
      return excluded(
        `${besides.length} A queries are lost at the same time as ${losses.length} AAAA queries`,
      );
    if (lossRate(a) >= Math.max(SPARED_SHARE, AAAA_OTHERS_LOST * lossRate(aaaa)))
      return excluded('A queries for other names are also lost, so the query type does not matter');
    claims.take(losses);
    claims.take(waitingForThese(claims, losses).filter(({ type }) => type === TYPE.AAAA));
    for (const name of names) claims.names.add(name);
    const servers = keysOf(losses, ({ server }) => server.address);
    const { asked, lost } = askedOf(observed, new Set(servers));
    const all = lost >= NEARLY_ALL * asked;
    return {
      severity: 'critical',
      confidence: losses.length >= SURE_AAAA_LOSSES ? 0.93 : 0.8,
      seen: [
        `${losses.length} AAAA queries to ${listed(servers)} for ${listed([...names])} got no reply, not even when they were repeated. The same server answered A queries for these names.`,
        `${listed(servers)} answered ${asked - lost} of ${asked} AAAA queries${all ? '' : ', so the losses depend on the name or began later'}.`,
      ],
      why: whyDropped(all ? servers : null),
      fix: [
        'Have the firewall or server answer AAAA queries (an empty NOERROR reply is enough).',
        'Until then, answer them in the cluster with template IN AAAA ZONE { rcode NOERROR } and an SOA record in authority for these zones.',
        'With glibc 2.36 or later, set options no-aaaa in the pods’ dnsConfig.',
      ],
      prove: `run ndots query ${[...names][0]} AAAA, then the same with A, and repeat both on a host outside the cluster`,
      disproved:
        'the same AAAA query is answered when it is sent alone (then its type is not the cause)',
      exchanges: losses,
    };
  },
  inCluster(facts) {
    const { answers } = facts;
    if (answers === null) return notAsked;
    const odd = oddFamilies(
      answers,
      facts,
      ({ a, aaaa }) => a.asked.reply !== null && aaaa.asked.reply === null,
    );
    if (odd === 'unasked') return unknown('A and AAAA could not be queried at any server');
    if (odd === 'none') return excluded('AAAA queries are answered');
    return {
      severity: 'critical',
      ...odd,
      confidence: 0.92,
      why: 'A firewall, a proxy or the server itself drops AAAA queries. glibc and Go wait 10 to 15 s and then use the A records, while musl fails after 5 s.',
      fix: [
        'Let AAAA queries through, or answer them. The right answer for a name without IPv6 addresses is an empty reply with the zone’s SOA record.',
      ],
    };
  },
};

/** @param servers those that drop all AAAA queries; null if they drop some */
function whyDropped(servers: readonly string[] | null): string {
  return servers !== null
    ? `${listed(servers)}, or a firewall in front of it, drops queries for IPv6 addresses instead of answering that there are none. Programs query both types and wait. glibc waits 15 s and Go 10 s, while musl fails after 5 s although it has the IPv4 address.`
    : 'The server for these names ignores queries for IPv6 addresses instead of answering that there are none. Programs query both types and wait. glibc waits 15 s and Go 10 s, while musl fails after 5 s although it has the IPv4 address.';
}

/** Outcomes of the AAAA queries to these servers. */
function askedOf({ names }: Observations, servers: ReadonlySet<string>): Outcomes {
  const sum = noOutcomes();
  for (const view of names.list)
    if (view.type === TYPE.AAAA)
      for (const [server, outcomes] of view.servers)
        if (servers.has(server)) addOutcomes(sum, outcomes);
  return sum;
}

/** The number of names that would never get an AAAA reply if AAAA queries were lost at the rate of A queries. */
function byChance({ names }: Observations, rate: number): number {
  return names.list
    .filter(({ type, outcomes }) => type === TYPE.AAAA && outcomes.asked >= 2)
    .reduce((sum, { outcomes }) => sum + rate ** outcomes.asked, 0);
}

/** True if the server answers A queries for the name at the same time. */
function isSpared({ names, losses }: Observations, queries: readonly SeenExchange[]): boolean {
  const { name, server } = queries[0]!;
  if (!names.get(name, TYPE.A)?.answeredMs.has(server.address)) return false;
  const { fromMs } = sentSpan(queries);
  const lost = losses.filter(
    (loss) =>
      loss.type === TYPE.A &&
      loss.name === name &&
      loss.server.address === server.address &&
      loss.sentMs >= fromMs - SAME_MOMENT_MS,
  );
  return lost.length <= AAAA_OTHERS_LOST * queries.length;
}
