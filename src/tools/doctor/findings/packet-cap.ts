/**
 * A fixed number of replies a second, regardless of the queries: a limit in transit, such as those
 * of cloud providers.
 */
import type { Observations } from '../observe/observations.ts';
import type { Bucket } from '../observe/bucket-replay.ts';
import { unevenness } from '../observe/evenness.ts';
import type { RateHistory } from '../observe/rates.ts';
import type { ServerView } from '../observe/server-view.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { deadNames } from '../observe/dead-names.ts';
import { excluded, unknown, type FindingKind, type OptionalText } from './finding.ts';
import { listed, percent, sentence, share } from '../texts.ts';
import {
  busiestFor,
  busiestText,
  repeatingClients,
  repeatingText,
  type Repeating,
} from '../observe/repeating-clients.ts';
import { type Claims } from '../observe/claims.ts';
import { floodAmong, floodFix, floodText } from '../observe/name-flood.ts';
import { queriesFor } from '../observe/long-replies.ts';
import { flooderOf } from '../observe/flooder.ts';
import { onlyAaaa } from '../observe/losses.ts';
import { searchDomainOf } from '../observe/search-domains.ts';
import { oneLosesAlone, sparesKnown } from '../observe/new-socket-losses.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import {
  ALIVE_SOCKET,
  AWS_LIMIT,
  BEHIND_WITH_WORK_MS,
  BELOW_LIMIT,
  BUCKET_CHANCE_FACTOR,
  BUCKET_MAX_ERROR,
  BUCKET_OF_CLIENT,
  CONSTANT_LOAD,
  EVEN_REPLIES,
  FULL_SECOND,
  LIMIT_BELOW,
  LIMIT_EXCEEDED,
  LIMIT_OF_DOMAIN,
  LIMIT_RATE,
  LOW_LIMIT,
  MIN_LIMITED_QUERIES,
  MIN_LIMIT_LOSSES,
  SAME_RATE,
} from '../thresholds/lateness.ts';
import { UNLIKELY_DEAD } from '../thresholds/silence.ts';
import { MIN_CASES, NEARLY_ALL, SLOW_QUANTILE } from '../thresholds/evidence.ts';

interface PacketLimit {
  readonly rate: number;
  readonly seen: string;
  /** The affected clients. Null means all. */
  readonly clients: ReadonlySet<string> | null;
  /** True if the rate is that of each client. */
  readonly isOfEach?: boolean;
}

const ofAws =
  'AWS allows each network interface 1024 packets a second to and from the VPC resolver, and drops the rest silently. All DNS pods on one node share that limit.';
const ofAnyLimit =
  'Something in between allows only a certain number of packets a second and drops the rest. It may be a limit in the cloud’s resolver or network, a firewall rule, or the server’s per-client limit.';

/** Replies stay at one rate while queries exceed it. */
export const packetCap: FindingKind = {
  code: 'ND4001',
  title: 'A packet limit allows only a fixed number of replies a second',
  name: 'a packet limit in the cloud',
  inCapture(observed, claims) {
    const busy = observed.servers.list.filter(
      ({ outcomes }) => outcomes.asked >= MIN_LIMITED_QUERIES.busy,
    );
    if (busy.length === 0) return unknown('too few queries to reach a packet limit');
    // A limit drops packets as they come, rather than those from new sockets.
    if (sparesKnown(observed) && !oneLosesAlone(observed))
      return excluded('sockets that were answered before lose no queries');
    for (const server of busy) {
      const limit = limitAt(server, observed, claims);
      if (limit === null) continue;
      const { found, losses } = limit;
      claims.take(losses);
      const flood = floodAmong(claims, losses);
      const flooder = flooderOf(observed, losses);
      const uncached = repeatingClients(observed, server.address);
      const busiest = busiestFor(
        observed,
        uncached.flatMap(({ names }) => names),
      );
      const aws = found.rate > AWS_LIMIT.from && found.rate < AWS_LIMIT.to;
      const exceeded = observed.counters.get('linkLocalExceeded') ?? 0;
      return {
        title: titleOf(flooder !== null, uncached),
        severity: 'critical',
        confidence: exceeded > 0 ? 0.98 : aws ? 0.93 : 0.87,
        seen: [
          flooder !== null &&
            `${flooder.address} sent ${share(flooder.asked, flooder.all)} queries while queries were lost (${flooder.perSecond.toFixed(0)} a second), nearly all for names that do not exist.`,
          found.seen,
          ...floodText(flood),
          ...uncached.map((each) => sentence(repeatingText(each))),
          busiest !== null &&
            !uncached.some(({ client }) => client === busiest.address) &&
            busiestText(busiest, observed.seconds),
          `${share(server.outcomes.lost, server.outcomes.asked)} queries got no reply, spread over all names.`,
          exceeded > 0 &&
            `The network card counts ${exceeded} packets beyond the allowance (linklocal_allowance_exceeded).`,
        ],
        why: aws ? ofAws : ofAnyLimit,
        fix: [
          ...(flooder === null ? floodFix(flood) : []),
          flooder !== null &&
            `First stop or slow down ${flooder.address}, since the limit is not reached without its queries. Find its pod with kubectl get pods -A -o wide | grep ${flooder.address} and check what it looks up.`,
          cacheFix(uncached),
          'Send fewer queries upstream. Use cache in the Corefile or a node-local cache, and remove the provider’s search domains that only return NXDOMAIN.',
          'Spread the DNS pods over more nodes, since such limits often apply per network interface.',
          `With ndots, set forward { max_pps ${Math.max(1, Math.floor(BELOW_LIMIT * found.rate))} }, which stays below the limit and logs when it is reached.`,
        ],
        ...(aws || exceeded > 0
          ? {
              prove: 'on the node, run ethtool -S eth0 | grep allowance_exceeded twice and compare',
              disproved: 'the counter does not rise while queries are lost',
            }
          : {
              prove: `at a quiet time, send ${server.address} more than ${found.rate.toFixed(0)} queries a second from ${found.isOfEach === true ? 'one address' : 'there'} (ndots bench, dnsperf); only the rest is lost`,
              disproved: 'queries are lost at a much lower rate, too',
            }),
        exchanges: losses,
      };
    }
    if (
      busy.some(
        ({ history, outcomes }) => outcomes.lost >= MIN_LIMIT_LOSSES && isSameAlways(history),
      )
    )
      return unknown('the query rate is constant, so there is no other rate to compare with');
    return excluded('replies follow the queries at every rate');
  },
};

function titleOf(isFlood: boolean, uncached: ReturnType<typeof repeatingClients>): string {
  return !isFlood
    ? uncached.length === 0
      ? packetCap.title
      : uncached.every(({ isServer }) => isServer)
        ? 'DNS servers that do not cache exceed a packet limit of their upstream'
        : 'Repeated queries for names that could be cached exceed a packet limit'
    : 'One client floods the DNS servers, and a packet limit drops everyone’s queries';
}

/** A limit that explains the losses of a server, and these losses; null if none does. */
function limitAt(
  server: ServerView,
  observed: Observations,
  claims: Claims,
): { readonly found: PacketLimit; readonly losses: readonly SeenExchange[] } | null {
  // If replies are late before losses begin, they wait in a queue.
  if (server.isOutOfBreath) return null;
  const found =
    sameForEach(server, observed) ??
    plateauOf(server, observed) ??
    bucketOf(server, observed) ??
    ofEachClient(server, observed) ??
    bucketOfEach(server, observed) ??
    evenlyOfSome(server, observed, claims);
  if (found === null) return null;
  const losses = claims
    .openOrFlooded(server.address)
    .filter(({ client }) => found.clients?.has(client.address) ?? true);
  if (losses.length < MIN_LIMIT_LOSSES) return null;
  // A limit does not look at names.
  const dead = deadNames(observed, losses);
  if (dead.some((each) => each.chance < UNLIKELY_DEAD || searchDomainOf(each, observed) !== null))
    return null;
  return isOfSearch(losses, observed) ? null : { found, losses };
}

/** The fix for clients that do not cache. */
function cacheFix(uncached: readonly Repeating[]): OptionalText {
  if (uncached.length === 0) return false;
  const clients = listed(uncached.map(({ client }) => client));
  return uncached.every(({ isServer }) => isServer)
    ? `Add the cache plugin to the server block of ${clients} (for example cache 30), or correct it. It is missing, or does not apply to these names, so every query goes upstream.`
    : `If ${clients} ${uncached.length === 1 ? 'is a DNS server' : 'are DNS servers'}, add the cache plugin to the server block (for example cache 30), or correct it. It is missing, or does not apply to these names. A program has to keep its connections open, or cache addresses.`;
}

/** True if all of these are below one search domain, and most queries are not. */
function isOfSearch(
  losses: readonly SeenExchange[],
  { domains, names, total }: Observations,
): boolean {
  return [...domains.all].some((domain) => {
    if (domains.isOfCluster(domain)) return false;
    const below = losses.filter(({ name }) => isBelow(name, domain)).length;
    const asked = queriesFor(names.list.filter(({ name }) => isBelow(name, domain)));
    return below >= LIMIT_OF_DOMAIN * losses.length && asked < LIMIT_OF_DOMAIN * total.asked;
  });
}

function plateauOf(server: ServerView, { lines }: Observations): PacketLimit | null {
  const { address, outcomes, history } = server;
  if (outcomes.asked < MIN_LIMITED_QUERIES.measured) return null;
  // A server that works as fast as it can gives replies at a fixed rate, too, but each waits for
  // those before it.
  const line = lines.get(address)?.line ?? null;
  if (server.quantile(0.5) > BEHIND_WITH_WORK_MS && line !== null && line.correlation > 0.5)
    return null;
  const plateau = plateauIn(history, FULL_SECOND.all);
  if (plateau === null) return null;
  const { rate, seconds, most } = plateau;
  return {
    rate,
    seen: `${address} sent ${rate.toFixed(0)} replies in each of ${seconds} seconds, while up to ${most} queries a second were sent to it.`,
    clients: null,
  };
}

/** A limit per client, if (nearly) all queries come from several clients that have the same limit. */
function sameForEach(server: ServerView, observed: Observations): PacketLimit | null {
  if (server.outcomes.asked < MIN_LIMITED_QUERIES.measured) return null;
  const limited = limitedClients(server, observed);
  const each = ofEachClient(server, observed);
  if (each === null || limited.length < 2 || plateauOf(server, observed) === null) return null;
  const asked = limited.reduce((sum, client) => sum + client.asked, 0);
  const isSame = limited.every(({ rate }) => Math.abs(rate - each.rate) <= SAME_RATE * each.rate);
  return isSame && asked >= NEARLY_ALL * server.outcomes.asked ? { ...each, clients: null } : null;
}

/** A limit per client. Others are answered at the time, so the sum has no plateau. */
function ofEachClient(server: ServerView, observed: Observations): PacketLimit | null {
  const limited = limitedClients(server, observed);
  const [first] = limited;
  if (first === undefined) return null;
  const { client, rate, seconds, most } = first;
  return {
    rate,
    seen: `${server.address} sent ${client} ${rate.toFixed(0)} replies in each of ${seconds} seconds, while the client sent up to ${most} queries a second.${alsoText(limited)}`,
    clients: new Set(limited.map((each) => each.client)),
    isOfEach: limited.length > 1,
  };
}

/** The clients that get replies at a fixed rate. */
function limitedClients(
  { address }: ServerView,
  { clients }: Observations,
): readonly (Plateau & { readonly client: string; readonly asked: number })[] {
  return clients.list.flatMap(({ address: client, servers }) => {
    const { rates = null, asked = 0 } = servers.get(address) ?? {};
    const plateau = rates === null ? null : plateauIn(rates.history, FULL_SECOND.one);
    return plateau === null ? [] : [{ client, asked, ...plateau }];
  });
}

/** Says that more clients than the first have such a limit. */
function alsoText({ length }: readonly unknown[]): string {
  return length > 1 ? ` The same applies to ${length - 1} more, each separately.` : '';
}

/**
 * A limit for some clients under a constant load, without another rate to compare with. The replies
 * are far more even than chance, and clients that send less lose nothing.
 */
function evenlyOfSome(
  { address }: ServerView,
  observed: Observations,
  claims: Claims,
): PacketLimit | null {
  const { clients, flows } = observed;
  const losses = claims.openTo(address);
  const isOfSocket = (client: string, lost: number): boolean => {
    const silent = flows
      .to(address)
      .filter((flow) => flow.client === client && flow.asked >= ALIVE_SOCKET.asked)
      .reduce((sum, { unanswered }) => sum + unanswered, 0);
    return silent > ALIVE_SOCKET.share * lost;
  };
  const limited = clients.list.flatMap((client) => {
    const counts = client.servers.get(address);
    const full = fullSeconds(counts?.rates?.history ?? [], FULL_SECOND.one);
    if (counts === undefined || full.length < LOW_LIMIT.seconds) return [];
    const passed = full.map(([, { asked, lost }]) => asked - lost);
    const sent = full.map(([, { asked }]) => asked);
    const { mean: rate } = spreadOf(passed);
    if (rate < LOW_LIMIT.rate || spreadOf(sent).mean < LIMIT_EXCEEDED * rate) return [];
    if (unevenness(passed, sent) > EVEN_REPLIES.least || isOfSocket(client.address, counts.lost))
      return [];
    if (onlyAaaa(losses.filter((loss) => loss.client.address === client.address))) return [];
    if (losesBelow(counts.rates!.history, rate)) return [];
    return [{ client: client.address, rate, seconds: full.length, sent: spreadOf(sent).mean }];
  });
  const [first] = limited;
  if (first === undefined) return null;
  const hit = new Set(limited.map(({ client }) => client));
  const others = clients.list.flatMap(({ address: client, servers }) =>
    hit.has(client) ? [] : (servers.get(address) ?? []),
  );
  // Any other cause of such a large share would also affect other clients.
  const share = 1 - first.rate / first.sent;
  const expected = share * others.reduce((sum, { asked }) => sum + asked, 0);
  const lost = others.reduce((sum, each) => sum + each.lost, 0);
  if (expected < EVEN_REPLIES.others || lost > EVEN_REPLIES.spared * expected) return null;
  return {
    rate: first.rate,
    seen: `${address} answered ${first.rate.toFixed(0)} of the ${first.sent.toFixed(0)} queries that ${first.client} sent it in each of ${first.seconds} seconds, far more evenly than chance would explain. ${others.length} ${others.length === 1 ? 'other client, which sends fewer queries, loses' : 'other clients, which send fewer queries, lose'} (nearly) none.${alsoText(limited)}`,
    clients: hit,
  };
}

interface Plateau {
  /** Replies a second, and the number of seconds with that rate. */
  readonly rate: number;
  readonly seconds: number;
  /** The most queries in one of these seconds. */
  readonly most: number;
}

/** @param least queries in a full second */
function plateauIn(history: RateHistory, least: number): Plateau | null {
  const full = fullSeconds(history, least);
  if (full.length < MIN_CASES) return null;
  const replied = spreadOf(full.map(([, second]) => second.replied));
  const { mean: rate } = replied;
  const asked = full.reduce((sum, [, second]) => sum + second.asked, 0) / full.length;
  const fewest = Math.min(...full.map(([, second]) => second.asked));
  if (asked < LIMIT_EXCEEDED * rate || fewest < rate) return null;
  const isSteady = rate >= LIMIT_RATE.least && replied.deviation <= LIMIT_RATE.deviation * rate;
  if (!isSteady && !isSteadierThanChance(full)) return null;
  if (losesBelow(history, rate)) return null;
  return {
    rate,
    seconds: full.length,
    most: Math.max(...full.map(([, second]) => second.asked)),
  };
}

/** True if every second has about as many queries. */
function isSameAlways(history: RateHistory): boolean {
  const asked = history.slice(1, -1).map(([, second]) => second.asked);
  return asked.length > 0 && Math.max(...asked) <= CONSTANT_LOAD * Math.min(...asked);
}

/** Full seconds with losses, without the edges of the burst. @param least queries in one */
function fullSeconds(history: RateHistory, least: number): RateHistory {
  return history.filter(([, { lost, asked }]) => lost > 0 && asked >= least).slice(1, -1);
}

/** True if queries are lost in seconds with fewer queries than the rate, which no limit explains. */
function losesBelow(history: RateHistory, rate: number): boolean {
  const below = history.filter(
    ([, { asked, lost }]) =>
      asked < LIMIT_BELOW.rate * rate && lost > LIMIT_BELOW.lost * asked && lost > MIN_CASES,
  );
  return below.length > 1;
}

/**
 * True if the number of replies varies less from second to second than chance, and than a fixed
 * share of the queries would. A low limit has this effect.
 */
function isSteadierThanChance(seconds: RateHistory): boolean {
  if (seconds.length < LOW_LIMIT.seconds) return false;
  const { mean: rate, deviation } = spreadOf(seconds.map(([, { replied }]) => replied));
  if (rate < LOW_LIMIT.rate) return false;
  const asked = seconds.reduce((sum, [, second]) => sum + second.asked, 0) / seconds.length;
  const share = rate / asked;
  const byShare = spreadOf(seconds.map(([, second]) => second.replied - share * second.asked));
  const most = LOW_LIMIT.spread * Math.min(Math.sqrt(rate * (1 - share)), byShare.deviation);
  return deviation <= most;
}

function spreadOf(values: readonly number[]): {
  readonly mean: number;
  readonly deviation: number;
} {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, deviation: Math.sqrt(squares / values.length) };
}

/** Bursts whose first queries are answered and whose tails are lost. */
function bucketOf(server: ServerView, { replays }: Observations): PacketLimit | null {
  const bucket = replays.get(server.address)?.best(BUCKET_MAX_ERROR) ?? null;
  if (bucket === null) return null;
  const { rate, burst, error, chance } = bucket;
  // A queue that overflows also drops the tail, but the queries that it accepts wait.
  if (chance < BUCKET_CHANCE_FACTOR * error || server.quantile(SLOW_QUANTILE) > BEHIND_WITH_WORK_MS)
    return null;
  return {
    rate,
    seen: `In each burst of queries to ${server.address}, about the first ${burst} are answered, and then about ${rate.toFixed(0)} a second. Such a limit explains ${percent(1 - error, 1)} of the losses, query by query.`,
    clients: null,
  };
}

/** A separate bucket per client, which predicts the lost queries of several clients. */
function bucketOfEach(server: ServerView, observed: Observations): PacketLimit | null {
  if (server.quantile(SLOW_QUANTILE) > BEHIND_WITH_WORK_MS) return null;
  const sure = limitedBelow(BUCKET_OF_CLIENT.error, server, observed);
  const [first] = sure;
  if (first === undefined || sure.length < BUCKET_OF_CLIENT.clients) return null;
  const limited = limitedBelow(BUCKET_OF_CLIENT.others, server, observed);
  const { client, rate, burst, error } = first;
  return {
    rate,
    seen: `In each burst of queries from ${client} to ${server.address}, about the first ${burst} are answered, and then about ${rate.toFixed(0)} a second. Such a limit explains ${percent(1 - error, 1)} of its losses.${alsoText(limited)}`,
    clients: new Set(limited.map((each) => each.client)),
  };
}

/** The server's clients whose losses a bucket explains with no more than this error. */
function limitedBelow(
  errorMax: number,
  server: ServerView,
  { clients }: Observations,
): readonly (Bucket & { readonly client: string })[] {
  return clients.list.flatMap(({ address, servers }) => {
    const bucket = servers.get(server.address)?.replay?.best(errorMax) ?? null;
    const isLimit = bucket !== null && bucket.chance >= BUCKET_CHANCE_FACTOR * bucket.error;
    return isLimit ? [{ client: address, ...bucket }] : [];
  });
}
