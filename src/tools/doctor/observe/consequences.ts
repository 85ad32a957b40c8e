/**
 * Consequences of a silent server: its clients are late, fail, or leave their own clients without a
 * reply.
 */
import type { Observations } from './observations.ts';
import { latencyOf, sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { type Claims } from './claims.ts';
import { FORWARDER_WAITS_MS, LATE_MS, NEARLY_ALL, SAME_MOMENT_MS } from '../thresholds/evidence.ts';
import { ASKED_BEFORE_MS, WAITED_FOR_SHARE } from '../thresholds/lateness.ts';

/** Queries that a server did not answer, or answered late. */
export interface Silence {
  readonly server: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Lost queries to other servers for the same names at the same time. A server does not answer a
 * query while its own query for the name is unanswered.
 */
export function waitingForThese(
  { open }: Claims,
  losses: readonly SeenExchange[],
): readonly SeenExchange[] {
  const names = new Set(losses.map(({ name }) => name));
  const servers = new Set(losses.map(({ server }) => server.address));
  const { fromMs, toMs } = sentSpan(losses);
  return open.filter(
    ({ name, server, sentMs }) =>
      names.has(name) &&
      !servers.has(server.address) &&
      sentMs >= fromMs - FORWARDER_WAITS_MS &&
      sentMs <= toMs + FORWARDER_WAITS_MS,
  );
}

/** Claims a silent server's losses and their consequences at its clients. */
export function takeSilence(
  observed: Observations,
  claims: Claims,
  losses: readonly SeenExchange[],
): void {
  claims.take(losses);
  claims.take(waitingForThese(claims, losses));
  explainWaiting(observed, claims, silencesOf(losses));
}

/** Times at which a server waits for replies to these queries. */
export function silencesOf(losses: readonly SeenExchange[]): readonly Silence[] {
  const all: { server: string; fromMs: number; toMs: number }[] = [];
  const open = new Map<string, { server: string; fromMs: number; toMs: number }>();
  for (const { sentMs, server } of losses.toSorted((one, other) => one.sentMs - other.sentMs)) {
    const last = open.get(server.address);
    if (last !== undefined && sentMs <= last.toMs) {
      last.toMs = sentMs + FORWARDER_WAITS_MS;
      continue;
    }
    const made = { server: server.address, fromMs: sentMs, toMs: sentMs + FORWARDER_WAITS_MS };
    open.set(server.address, made);
    all.push(made);
  }
  return all;
}

/**
 * Explains losses, failures and late replies at the silent servers' clients by these silences.
 */
export function explainWaiting(
  observed: Observations,
  claims: Claims,
  silences: readonly Silence[],
): void {
  const waiting = waitingServers(observed, new Set(silences.map(({ server }) => server)));
  if (waiting.size === 0) return;
  claims.silences.push(...silences);
  claims.take(
    claims.open.filter(
      (loss) =>
        [loss.server, ...loss.hops.map(({ server }) => server)].some(({ address }) =>
          waiting.has(address),
        ) &&
        // They answer cluster names from memory.
        !observed.domains.isOfCluster(loss.name) &&
        silences.some(
          ({ fromMs, toMs }) => loss.sentMs >= fromMs - SAME_MOMENT_MS && loss.sentMs <= toMs,
        ),
    ),
  );
  // A log without times, read together with a capture, does not show the time.
  const slow = observed.slow.filter(({ sentMs }) => sentMs >= observed.firstMs);
  const late = slow.filter((each) => claims.isOfSilence(each));
  if (late.length >= NEARLY_ALL * slow.length)
    for (const address of waiting) claims.late.add(address);
}

/**
 * Explains late replies from servers that were querying these servers for the same name without
 * success. A node cache has one address for its clients and another for its queries.
 */
export function explainLate(
  { affected }: Observations,
  claims: Claims,
  losses: readonly SeenExchange[],
): void {
  const asked = Map.groupBy(losses, ({ name, type }) => `${type} ${name}`);
  const silent = new Set(
    losses
      .flatMap(({ server, hops }) => [server, ...hops.map((hop) => hop.server)])
      .map(({ address }) => address),
  );
  const late = affected
    .flatMap(({ exchanges }) => exchanges)
    .filter((each) => (latencyOf(each) ?? 0) >= LATE_MS && !silent.has(each.server.address));
  for (const [address, theirs] of Map.groupBy(late, ({ server }) => server.address)) {
    const waiting = theirs.filter(({ name, type, sentMs, repliedMs }) =>
      asked
        .get(`${type} ${name}`)
        ?.some((loss) => loss.sentMs >= sentMs - SAME_MOMENT_MS && loss.sentMs < repliedMs!),
    );
    if (waiting.length >= WAITED_FOR_SHARE * theirs.length) claims.late.add(address);
  }
}

/** Tests whether the server was late or failed because its own query for this name got no reply. */
export function waitedForLostTest({ losses }: Observations): (exchange: SeenExchange) => boolean {
  const byQuestion = Map.groupBy(losses, ({ name, type }) => `${type} ${name}`);
  return ({ client, name, type, sentMs, repliedMs }) =>
    (byQuestion.get(`${type} ${name}`) ?? []).some(
      (loss) =>
        loss.client.address !== client.address &&
        loss.sentMs >= sentMs - ASKED_BEFORE_MS &&
        loss.sentMs <= repliedMs!,
    );
}

/** Servers that query one of these servers, and the addresses in front of them. */
function waitingServers(
  { servers, backends, serverNames }: Observations,
  silent: ReadonlySet<string>,
): ReadonlySet<string> {
  const clients = new Set(
    [...silent].flatMap((address) => [
      ...(servers.get(address)?.clients ?? []),
      ...(backends.get(address)?.clients ?? []),
    ]),
  );
  const waiting = [...servers.list, ...backends.list].filter(
    ({ address }) => clients.has(serverNames.hostOf(address)) && !silent.has(address),
  );
  const served = new Set(
    waiting.flatMap(({ address, clients: theirs }) =>
      backends.get(address) === undefined ? [] : [...theirs],
    ),
  );
  const services = servers.list.filter(
    ({ clients: theirs, address }) =>
      !silent.has(address) && [...theirs].some((client) => served.has(client)),
  );
  return new Set([...waiting, ...services].map(({ address }) => address));
}

/**
 * Names and types that failed only during these silences, or so shortly afterwards that the failure
 * was still cached.
 */
export function failedInSilence(
  { failed, firstMs }: Observations,
  claims: Claims,
): (name: string, type: number) => boolean {
  const counts = new Map<string, { all: number; within: number }>();
  if (claims.silences.length > 0)
    for (const each of failed) {
      if (each.sentMs < firstMs) continue;
      const key = `${each.type} ${each.name}`;
      let count = counts.get(key);
      if (count === undefined) counts.set(key, (count = { all: 0, within: 0 }));
      count.all++;
      if (claims.isOfSilence(each, FORWARDER_WAITS_MS)) count.within++;
    }
  return (name, type) => {
    const count = counts.get(`${type} ${name}`);
    return count !== undefined && count.within >= NEARLY_ALL * count.all;
  };
}
