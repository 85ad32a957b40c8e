/** A server that refuses queries from one source above a certain rate. */
import { median } from '../observe/median.ts';
import { RCODE } from '../../../server/wire/iana.ts';
import type { Failure, Observations } from '../observe/observations.ts';
import { isServer, programs } from '../observe/roles.ts';
import type { RateHistory } from '../observe/rates.ts';
import { busiestOf } from '../observe/busiest-client.ts';
import { isSlow, upstreamsOf } from '../observe/slow-upstream.ts';
import { fromTo, percent, share } from '../texts.ts';
import { LATE_MS, MIN_CASES, MIN_QUERIES, MOST } from '../thresholds/evidence.ts';
import { REFUSED_RATE } from '../thresholds/errors.ts';
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

interface Limit {
  readonly client: string;
  readonly server: string;
  readonly refused: readonly Failure[];
  /** Queries answered per second while others are refused. */
  readonly served: number;
  /** Median queries per second in seconds with refusals, and the maximum in seconds without. */
  readonly busy: number;
  readonly calm: number;
  readonly asked: number;
}

export const refusedRate: FindingKind = {
  code: 'ND4045',
  title: 'A server limits its reply rate and drops or truncates further replies (RRL)',
  name: 'response rate limiting',
  inCapture(observed, claims) {
    const refusals = observed.failed.filter(({ rcode }) => rcode === RCODE.REFUSED);
    if (refusals.length < MIN_QUERIES) return unknown('too few queries are refused');
    const groups = Map.groupBy(
      refusals,
      ({ client, server }) => `${client.address} ${server.address}`,
    );
    const limits = [...groups.values()]
      .flatMap((refused) => limitOf(refused, observed) ?? [])
      .toSorted(
        (one, other) =>
          Number(isServer(observed, other.client)) - Number(isServer(observed, one.client)) ||
          other.refused.length - one.refused.length,
      );
    const [limit] = limits;
    if (limit === undefined) return excluded('refusals do not depend on a client’s query rate');
    const { client, server, refused, served, busy, calm, asked } = limit;
    for (const { name } of refusals) claims.names.add(name);
    const { fromMs, toMs } = sentSpan(refused);
    const others = programs(observed).filter(({ address }) => address !== client);
    const busiest = busiestOf(others.map(({ address, outcomes }) => [address, outcomes.asked]));
    const top = busiest !== null && busiest.share >= REFUSED_RATE.ofOne ? busiest : null;
    return {
      title: 'A server limits each client’s query rate and refuses queries above it',
      subject: server,
      severity: 'critical',
      confidence: 0.92,
      seen: [
        `${server} refused ${share(refused.length, asked)} queries from ${client}, ${fromTo(fromMs, toMs, 'fine')}.`,
        `Refusals depend on the rate. In seconds with refusals, ${client} sent ${busy} queries (the median), of which about ${served} were answered. In seconds without refusals, it sent at most ${calm}.`,
        top !== null &&
          `${top.address} sends ${percent(top.queries, top.all)} of all client queries here and uses up the shared limit.`,
      ],
      why: `${server} accepts about ${served} queries per second from one source address and refuses the rest (dnsdist MaxQPSIPRule, Unbound ip-ratelimit, a provider’s quota). All clients whose queries pass through ${client} share this limit, so one busy program makes other programs’ lookups fail.`,
      fix: [
        top === null
          ? 'Find the client that sends the most queries, and reduce its rate or give it a cache.'
          : `Reduce the query rate of ${top.address}, or let it use its own cache, because it looks up many names that no shared cache has.`,
        `Raise the limit on ${server} for ${client}, or exempt the cluster’s DNS servers.`,
        'Send fewer queries upstream: cache with a longer TTL and prefetch, and lower ndots. Use more upstreams or source addresses to share the load.',
      ],
      prove: `from ${client}, run for i in $(seq ${2 * served}); do dig @${server} n$i.example.com & done: about ${served} are answered and the others get REFUSED, while one query per second is always answered`,
      disproved: `${server} also refuses single queries, or its log reports an access rule`,
      affected: [`${client} at ${server}`],
    };
  },
};

function limitOf(refused: readonly Failure[], observed: Observations): Limit | null {
  const [{ client, server }] = refused as [Failure];
  const pair = observed.clients.get(client.address)?.servers.get(server.address);
  const view = observed.servers.get(server.address);
  if (refused.length < MIN_QUERIES || pair?.rates === null || pair === undefined) return null;
  // A limit on waiting queries refuses while the server is slow.
  if (view === undefined || isSlow(view, LATE_MS)) return null;
  if (waitsForUpstream(server.address, refused, observed)) return null;
  if (!answersAlike(server.address, refused, observed)) return null;
  const counts = new Map<number, number>();
  for (const { sentMs } of refused) {
    const second = Math.floor(sentMs / 1000);
    counts.set(second, (counts.get(second) ?? 0) + 1);
  }
  const history: RateHistory = pair.rates.history;
  const busy = history.filter(([second]) => counts.has(second));
  const calm = history.filter(([second, { asked }]) => !counts.has(second) && asked > 0);
  if (busy.length < MIN_CASES || calm.length < MIN_CASES) return null;
  const served = busy.map(([second, { asked, lost }]) => asked - lost - counts.get(second)!);
  const usual = median(served);
  const most = Math.max(...calm.map(([, { asked }]) => asked));
  const sent = median(busy.map(([, { asked }]) => asked));
  const near = served.filter((count) => Math.abs(count - usual) <= REFUSED_RATE.near * usual);
  const within = calm.filter(([, { asked }]) => asked <= REFUSED_RATE.above * usual);
  if (usual < 1 || sent < REFUSED_RATE.above * Math.max(usual, most)) return null;
  if (near.length < REFUSED_RATE.steady * busy.length || within.length < MOST * calm.length)
    return null;
  return {
    client: client.address,
    server: server.address,
    ...{ refused, served: usual, busy: sent, calm: most, asked: pair.asked },
  };
}

/**
 * True if queries wait at the server while it refuses others: its own queries to an upstream, or
 * those that it does not refuse, are late. A limit on waiting queries does not depend on the rate.
 */
function waitsForUpstream(
  server: string,
  refused: readonly Failure[],
  observed: Observations,
): boolean {
  if (upstreamsOf(observed, server).some((view) => isSlow(view, LATE_MS))) return true;
  const { fromMs, toMs } = sentSpan(refused);
  const [{ client }] = refused as [Failure];
  const late = observed.slow.filter(
    (each) =>
      each.client.address === client.address && each.sentMs >= fromMs && each.sentMs <= toMs,
  );
  return late.length >= MIN_QUERIES;
}

/** True if the server answers names of the same kind. If it refuses all external names, the reason is not a rate. */
function answersAlike(
  server: string,
  refused: readonly Failure[],
  { names, domains }: Observations,
): boolean {
  const kinds = new Set(refused.map(({ name }) => domains.isOfCluster(name)));
  const answered = names.list.reduce(
    (sum, { name, servers }) =>
      sum + (kinds.has(domains.isOfCluster(name)) ? (servers.get(server)?.found ?? 0) : 0),
    0,
  );
  return answered >= MIN_QUERIES;
}
