/** Servers that accept only the first queries of each burst and refuse the others at once. */
import { RCODE } from '../../../server/wire/iana.ts';
import { BURST_LIMIT, FORWARD_LIMIT_LEAST, WAITING_LIMIT } from '../thresholds/errors.ts';
import { MIN_CASES, MIN_QUERIES, MOST, SPARED_SHARE } from '../thresholds/evidence.ts';
import { busiestOf, type BusiestClient } from './busiest-client.ts';
import { median } from './median.ts';
import type { Observations } from './observations.ts';
import { runsOf } from './sorted-times.ts';
import { WaitingAtServer } from './waiting-at-server.ts';
import { tally } from '../texts.ts';

/** The bursts at one server. All numbers are of queries unless they say otherwise. */
export interface BurstLimit {
  /** The most accepted queries that ever waited at a time. */
  readonly most: number;
  readonly refused: number;
  /** Of these, those that came while the limit was (nearly) reached. */
  readonly inTime: number;
  /** Queries that were accepted because fewer waited. */
  readonly accepted: number;
  /** The number of bursts, and the medians of their queries, lookups, accepted queries and lengths in milliseconds. */
  readonly bursts: number;
  readonly size: number;
  readonly lookups: number;
  readonly letThrough: number;
  readonly spanMs: number;
  /** Among the clients whose queries were refused. */
  readonly busiest: BusiestClient;
}

/** Null if refusals do not depend on the number of queries that wait. */
export function burstLimitAt(observed: Observations, server: string): BurstLimit | null {
  const queries = observed.lines.get(server)?.queries ?? [];
  const refused = queries.filter(
    ({ isRefused, sentMs, repliedMs }) => isRefused && repliedMs - sentMs < WAITING_LIMIT.atOnceMs,
  );
  const busiest = busiestOf(tally(refused, ({ client }) => client));
  if (busiest === null || refused.length < MIN_QUERIES) return null;
  if (isRule(observed, server)) return null;
  // Queries answered from memory do not count towards the limit.
  const forwarded = queries.filter(
    ({ isRefused, sentMs, repliedMs }) =>
      !isRefused && repliedMs - sentMs >= BURST_LIMIT.forwardedMs,
  );
  const waiting = new WaitingAtServer(forwarded);
  const { most } = waiting;
  if (most < FORWARD_LIMIT_LEAST) return null;
  const isFull = ({ sentMs }: { readonly sentMs: number }): boolean =>
    waiting.at(sentMs) >= WAITING_LIMIT.full * most;
  const inTime = refused.filter(isFull).length;
  const accepted = forwarded.filter((each) => !isFull(each)).length;
  // A rule refuses queries in proportion to their number, however many wait.
  const byChance = (accepted * inTime) / Math.max(1, forwarded.length - accepted);
  if (
    inTime < WAITING_LIMIT.refused * refused.length ||
    accepted < MIN_QUERIES ||
    byChance < MIN_CASES ||
    refused.length - inTime > SPARED_SHARE * byChance
  )
    return null;
  const clients = new Set(refused.map(({ client }) => client));
  const theirs = forwarded.filter(({ client }) => clients.has(client));
  const bursts = runsOf([...refused, ...theirs], areNear);
  const full = bursts.filter((burst) => burst.some(({ isRefused }) => isRefused));
  // After a refusal, a resolver tries the search domains.
  const firstSteps = observed.failed.filter(
    (each) =>
      each.rcode === RCODE.REFUSED &&
      each.server.address === server &&
      observed.domains.domainOf(each.name) === null,
  );
  const refusedLookups = (burst: (typeof bursts)[number]): number => {
    const [fromMs, toMs] = [burst[0]!.sentMs, burst.at(-1)!.sentMs];
    const own = firstSteps.filter(({ sentMs }) => sentMs >= fromMs && sentMs <= toMs);
    return new Set(own.map(({ name }) => name)).size;
  };
  const refusedIn = (burst: (typeof bursts)[number]): number =>
    burst.reduce((sum, { isRefused }) => sum + Number(isRefused), 0);
  return {
    most,
    refused: refused.length,
    inTime,
    accepted,
    bursts: full.length,
    size: median(full.map((burst) => burst.length)),
    lookups: median(full.map((burst) => refusedLookups(burst) + burst.length - refusedIn(burst))),
    letThrough: median(full.map((burst) => burst.length - refusedIn(burst))),
    spanMs: median(full.map((burst) => burst.at(-1)!.sentMs - burst[0]!.sentMs)),
    busiest,
  };
}

/** True if most refused names are refused in several bursts and never answered, as by a block list. */
function isRule({ failed, names }: Observations, server: string): boolean {
  const own = failed.filter(
    (each) => each.rcode === RCODE.REFUSED && each.server.address === server,
  );
  const ruled = [...Map.groupBy(own, ({ type, name }) => `${type} ${name}`).values()].filter(
    (refusals) => {
      const outcomes = names.get(refusals[0]!.name, refusals[0]!.type)?.outcomes;
      const isAnswered =
        outcomes === undefined || outcomes.found + outcomes.nodata + outcomes.nxdomain > 0;
      return !isAnswered && runsOf(refusals, areNear).length >= MIN_CASES;
    },
  );
  return ruled.reduce((sum, { length }) => sum + length, 0) >= MOST * own.length;
}

/** True if both belong to one burst. */
function areNear(one: QueryTime, next: QueryTime): boolean {
  return next.sentMs - one.sentMs <= BURST_LIMIT.gapMs;
}

type QueryTime = { readonly sentMs: number };
