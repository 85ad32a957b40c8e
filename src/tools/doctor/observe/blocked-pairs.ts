/** Clients and servers between which TCP connections for DNS are not accepted. */
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { MIN_CASES, MOST, RARE_SHARE, SPARED_SHARE } from '../thresholds/evidence.ts';
import { TCP_PAIR_FAILS, TCP_WAIT_MS } from '../thresholds/transport.ts';
import { answeredBetween, lostOverFreshTcp } from './losses.ts';
import type { Observations } from './observations.ts';
import { isFailure } from './outcomes.ts';
import { failedOf, failsOften, type ConnectionPair } from './server-connections.ts';

export function blockedPairs(observed: Observations): readonly ConnectionPair[] {
  const { connections, lastMs, servers, backends, flows } = observed;
  const pairs = connections.at(lastMs);
  const failing = pairs.filter((pair) => {
    const { server, failedFromMs } = pair;
    if (
      failedOf(pair) === 0 ||
      failedOf(pair) < TCP_PAIR_FAILS * (failedOf(pair) + acceptedMeanwhile(pair))
    )
      return false;
    // A server that does not answer over UDP either is down, and TCP is not closed. (If all clients
    // use TCP, as a node cache does with force_tcp, that cannot be seen.)
    const isKnown = servers.get(server) !== undefined || backends.get(server) !== undefined;
    const isAskedByUdp =
      backends.get(server) !== undefined ||
      flows.to(server).some(({ lastMs: askedMs }) => askedMs >= failedFromMs);
    return !isKnown || !isAskedByUdp || answeredBetween(observed, server, failedFromMs, Infinity);
  });
  // A pair that fails once may be chance, but not a server or a client that never succeeds.
  const of = (name: string): number =>
    failing
      .filter(({ client, server }) => client === name || server === name)
      .reduce((sum, pair) => sum + failedOf(pair), 0);
  const all = pairs.reduce((sum, { opened }) => sum + opened, 0);
  const bad = failing.reduce((sum, pair) => sum + failedOf(pair), 0);
  if (bad >= RARE_SHARE * all) return failing;
  return failing.filter(
    (pair) => failsOften(pair) || of(pair.client) >= MIN_CASES || of(pair.server) >= MIN_CASES,
  );
}

/** Counts connections that were accepted while others were not. */
export function acceptedMeanwhile({
  acceptedMs,
  failedFromMs,
  failedToMs,
}: ConnectionPair): number {
  return acceptedMs.filter((ms) => ms > failedFromMs && ms < failedToMs).length;
}

/** Returns the queries that failed or got no reply while a forwarder tried only TCP. */
export function waitingForTcp(
  { affected, domains, names }: Observations,
  blocked: readonly ConnectionPair[],
): readonly SeenExchange[] {
  const fromMs = blocked.reduce((least, each) => Math.min(least, each.failedFromMs), Infinity);
  const toMs = blocked.reduce((most, each) => Math.max(most, each.failedToMs), 0);
  const all = affected.flatMap(({ exchanges }) =>
    exchanges.filter(
      ({ sentMs }) => sentMs >= fromMs - TCP_WAIT_MS.before && sentMs <= toMs + TCP_WAIT_MS.after,
    ),
  );
  const fails = (each: SeenExchange): boolean => isLost(each) || isFailure(each);
  const failed = all.filter(fails);
  // A node cache may have another upstream for external names.
  const isOwn = failed.every(({ name }) => domains.isOfCluster(name));
  const beganMs = failed.reduce((least, { sentMs }) => Math.min(least, sentMs), Infinity);
  const within = isOwn
    ? all.filter(({ name, sentMs }) => domains.isOfCluster(name) && sentMs >= beganMs)
    : all;
  if (failed.length >= MOST * within.length) return failed;
  // The forwarder has earlier answers in its cache.
  const asked = within.filter(({ name, type }) => {
    const view = names.get(name, type);
    return view === undefined || Math.min(view.firstFoundMs, view.firstNegativeMs) >= fromMs;
  });
  const failing = asked.filter(fails).length;
  return failing >= MIN_CASES && failing >= MOST * asked.length ? failed : [];
}

/** True if the server accepted the client’s connections at first. */
export function worked({ acceptedMs, failedFromMs, refused }: ConnectionPair): boolean {
  return refused === 0 && acceptedMs.filter((ms) => ms < failedFromMs).length >= MIN_CASES;
}

/** True if the server accepted the client’s connections again after the last one that it did not accept. */
export function isServedAgain({ acceptedMs, failedToMs }: ConnectionPair): boolean {
  return failedToMs > -Infinity && acceptedMs.filter((ms) => ms > failedToMs).length >= MIN_CASES;
}

/** True if hardly any connection was accepted between the first and the last one that was not. */
export function isAway(pair: ConnectionPair): boolean {
  return acceptedMeanwhile(pair) <= SPARED_SHARE * failedOf(pair);
}

/**
 * True if connections were accepted whose queries got no reply. A server that has used up its connections still accepts
 * a few, which its kernel queues (the backlog). A rule drops first packets, or those of every connection.
 */
export function hasBacklog(observed: Observations, blocked: readonly ConnectionPair[]): boolean {
  const servers = new Set(blocked.map(({ server }) => server));
  const fresh = lostOverFreshTcp(observed).filter((loss) =>
    [loss.server, ...loss.hops.map(({ server }) => server)].some(({ address }) =>
      servers.has(address),
    ),
  );
  return fresh.length >= MIN_CASES;
}
