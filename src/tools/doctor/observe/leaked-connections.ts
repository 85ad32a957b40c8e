/** Clients that never close their TCP connections to a DNS server, until it accepts or serves no more. */
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { fromTo, listed } from '../texts.ts';
import { MIN_CASES, MOST, SPARED_SHARE } from '../thresholds/evidence.ts';
import { MIN_LEAKED_CONNECTIONS } from '../thresholds/transport.ts';
import { isServedAgain } from './blocked-pairs.ts';
import { lostOverFreshTcp } from './losses.ts';
import type { Observations } from './observations.ts';
import type { ConnectionPair, OpenConnections } from './server-connections.ts';

/** A leak because of which accepted connections are not served. */
export interface UnservedLeak {
  readonly leak: OpenConnections;
  /** The queries over accepted connections that got no reply, of all clients. */
  readonly queries: readonly SeenExchange[];
}

/** Null if queries over accepted connections get replies, or if no client leaks connections. */
export function unservedLeak(observed: Observations): UnservedLeak | null {
  const unserved = unservedQueries(observed);
  const since = new Map([...unserved].map(([server, [first]]) => [server, first!.sentMs]));
  const failing = [...unserved].flatMap(([server, queries]) =>
    queries.map(({ client }) => ({ client: client.address, server })),
  );
  const leak = leakTo(observed, since, failing);
  return leak === null ? null : { leak, queries: unserved.get(leak.server)! };
}

/** The leak because of which these connections are not accepted. Null if no client leaks connections. */
export function leakBefore(
  observed: Observations,
  blocked: readonly ConnectionPair[],
): OpenConnections | null {
  return leakTo(observed, failingSince(blocked), blocked);
}

/** Queries over accepted connections, by server, if (nearly) none has got a reply since the first of them. */
function unservedQueries(observed: Observations): ReadonlyMap<string, readonly SeenExchange[]> {
  const pairs = observed.connections.at(observed.lastMs);
  const lost = lostOverFreshTcp(observed).toSorted((one, other) => one.sentMs - other.sentMs);
  const byServer = Map.groupBy(lost, ({ server }) => server.address);
  return new Map(
    [...byServer].filter(([server, own]) => {
      const accepted = pairs
        .filter((pair) => pair.server === server)
        .flatMap(({ acceptedMs }) => acceptedMs.filter((ms) => ms >= own[0]!.sentMs));
      return own.length >= MIN_CASES && own.length >= MOST * accepted.length;
    }),
  );
}

/** The time of the first unanswered connection, by server. */
function failingSince(blocked: readonly ConnectionPair[]): ReadonlyMap<string, number> {
  const since = new Map(
    blocked.filter(({ refused }) => refused === 0).map((pair) => [pair.server, pair.failedFromMs]),
  );
  for (const { server, failedFromMs } of blocked)
    if (failedFromMs < (since.get(server) ?? -Infinity)) since.set(server, failedFromMs);
  return since;
}

/** A client and the server that does not answer it. */
type FailingPair = Pick<ConnectionPair, 'client' | 'server'>;

/**
 * Returns the client with the most connections that were open when others began to fail. Null if no client has many.
 * @param since the time of the first failure, by server
 */
function leakTo(
  { connections, lastMs }: Observations,
  since: ReadonlyMap<string, number>,
  failing: readonly FailingPair[],
): OpenConnections | null {
  const pairs = Map.groupBy(connections.at(lastMs), ({ server }) => server);
  const clients = Map.groupBy(failing, ({ server }) => server);
  const isUsedUp = new Set(
    [...since].flatMap(([server, fromMs]) => {
      const own = new Set(clients.get(server)?.map(({ client }) => client));
      return mayBeUsedUp(pairs.get(server) ?? [], fromMs, own) ? server : [];
    }),
  );
  const [most] = connections.open
    .filter(({ server }) => isUsedUp.has(server))
    .map((each) => ({
      ...each,
      sinceMs: each.sinceMs.filter((ms) => ms < (since.get(each.server) ?? -Infinity)),
    }))
    .toSorted((one, other) => other.sinceMs.length - one.sinceMs.length);
  return most !== undefined &&
    most.sinceMs.length >= MIN_LEAKED_CONNECTIONS &&
    most.closed <= SPARED_SHARE * most.sinceMs.length
    ? most
    : null;
}

/**
 * True if a server accepted connections of the failing clients before, and afterwards hardly any of another client, or
 * again of theirs. A rule for one client leaves the others' connections alone, however many of them are open.
 * @param pairs those of this server
 */
function mayBeUsedUp(
  pairs: readonly ConnectionPair[],
  fromMs: number,
  failing: ReadonlySet<string>,
): boolean {
  const worked = pairs.some(
    ({ client, acceptedMs }) => failing.has(client) && acceptedMs.some((ms) => ms < fromMs),
  );
  const isOtherServed = pairs.some(
    ({ client, acceptedMs }) =>
      !failing.has(client) && acceptedMs.filter((ms) => ms > fromMs).length >= MIN_CASES,
  );
  return worked && !isOtherServed && !pairs.some(isServedAgain);
}

/** The parts of a finding about a leak. @param clients those whose connections or queries fail */
export function leakTexts(
  { client, server, sinceMs }: OpenConnections,
  { truncated }: Observations,
  clients: readonly string[],
): {
  readonly title: string;
  readonly seen: string;
  readonly why: string;
  readonly fix: readonly string[];
  readonly prove: string;
  readonly disproved: string;
} {
  const others = [...new Set(clients)].filter((each) => each !== client);
  return {
    title: 'A client never closes its TCP connections to a DNS server, so the server has none left',
    seen: `${client} opened ${sinceMs.length} TCP connections to ${server} ${fromTo(sinceMs[0]!, sinceMs.at(-1)!)}, and neither side has closed one of them. Before these, TCP was answered.`,
    why: `${client} opens a new connection for each lookup and never closes it. A server accepts a limited number of TCP connections (20 in dnsmasq). When they are used up, it leaves later ones unanswered, ${others.length === 0 ? 'those of this client and of all others' : `those of ${listed(others)}, too`}. TCP port 53 is not blocked.${truncated.length === 0 ? '' : ' A truncated answer has to be fetched over TCP, so its lookups fail.'}`,
    fix: [
      `Restart the program on ${client}, which closes its connections, and correct it: one connection can carry all its queries, and has to be closed when it is idle.`,
      `Limit the connections per client in front of ${server}, or raise the server’s limit (max-tcp-connections in dnsmasq, incoming-num-tcp in Unbound, tcp-clients in BIND) and shorten its idle timeout.`,
    ],
    prove: `on the server’s host, ss -tn state established sport = :53 lists the connections of ${client}`,
    disproved: `TCP is still unanswered after ${client} has been restarted`,
  };
}
