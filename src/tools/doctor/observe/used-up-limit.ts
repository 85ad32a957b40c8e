/** Limits on waiting queries that are used up by queries which never get a reply. */
import { RCODE } from '../../../server/wire/iana.ts';
import { latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import {
  FILLED_LIMIT,
  FORWARD_LIMIT_LEAST,
  UPSTREAM_WAIT_MS,
  WAITING_LIMIT,
} from '../thresholds/errors.ts';
import { MIN_CASES, MIN_QUERIES, MOST } from '../thresholds/evidence.ts';
import type { Claims } from './claims.ts';
import { registeredDomainOf } from './domain-of-name.ts';
import type { Failure, Observations } from './observations.ts';
import { WaitingAtServer, type QueryWait } from './waiting-at-server.ts';

/** A server that refuses queries while many others for one zone wait. */
export interface FilledLimit {
  readonly server: string;
  /** The zone that does not answer, without a final dot. */
  readonly zone: string;
  readonly refused: readonly Failure[];
  /** Of these, those that came while the limit was used up. */
  readonly inTime: number;
  /** The highest number of waiting queries. Repeats of a query count once. */
  readonly most: number;
  /** The waiting queries, from clients and from the server. */
  readonly losses: readonly SeenExchange[];
}

export function filledLimit(observed: Observations, claims: Claims): FilledLimit | null {
  const quick = observed.failed.filter(
    (each) =>
      each.rcode === RCODE.REFUSED && (latencyOf(each) ?? Infinity) < WAITING_LIMIT.atOnceMs,
  );
  for (const [server, refused] of Map.groupBy(quick, (each) => each.server.address)) {
    if (refused.length < MIN_QUERIES) continue;
    const found = limitOf(server, refused, observed, claims);
    if (found !== null) return found;
  }
  return null;
}

function limitOf(
  server: string,
  refused: readonly Failure[],
  observed: Observations,
  claims: Claims,
): FilledLimit | null {
  const { backends, domains, names } = observed;
  const pods = backends.list.filter(({ services }) => services.has(server));
  const own = new Set([server, ...pods.map(({ address }) => address)]);
  const outside = claims.open.filter(({ name }) => !domains.isOfCluster(name));
  const fromServer = outside.filter(({ client }) => own.has(client.address));
  const toServer = outside.filter((each) => own.has(each.server.address));
  const lost = fromServer.length >= FORWARD_LIMIT_LEAST ? fromServer : toServer;
  const [zone, ofZone] = [...Map.groupBy(lost, ({ name }) => registeredDomainOf(name))].toSorted(
    ([, one], [, other]) => other.length - one.length,
  )[0] ?? ['', []];
  if (ofZone.length < MOST * lost.length) return null;
  const waiting = new WaitingAtServer(waits(ofZone));
  const { most } = waiting;
  if (most < FORWARD_LIMIT_LEAST) return null;
  const inTime = refused.filter(
    ({ sentMs }) => waiting.at(sentMs) >= FILLED_LIMIT.full * most,
  ).length;
  if (inTime < WAITING_LIMIT.refused * refused.length) return null;
  // A rule refuses a name each time, and a whole zone.
  const isLimit = refused.filter(({ name, type }) => {
    if (registeredDomainOf(name) === zone) return true;
    const outcomes = names.get(name, type)?.outcomes;
    return outcomes !== undefined && outcomes.found + outcomes.nodata > 0;
  });
  if (isLimit.length < Math.max(MIN_CASES, MOST * refused.length)) return null;
  const losses = outside.filter(({ name }) => registeredDomainOf(name) === zone);
  return { server, zone, refused, inTime, most, losses };
}

/** From when to when each query waits. A repeat only prolongs the wait. */
function waits(losses: readonly SeenExchange[]): readonly QueryWait[] {
  return [...Map.groupBy(losses, ({ name, type }) => `${type} ${name}`).values()].flatMap((all) => {
    const found: { sentMs: number; repliedMs: number }[] = [];
    for (const { sentMs } of all.toSorted((one, other) => one.sentMs - other.sentMs)) {
      const last = found.at(-1);
      const endMs = sentMs + UPSTREAM_WAIT_MS;
      if (last !== undefined && sentMs <= last.repliedMs) last.repliedMs = endMs;
      else found.push({ sentMs, repliedMs: endMs });
    }
    return found;
  });
}
