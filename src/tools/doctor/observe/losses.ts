/** Tests of lost queries that several findings share. */
import { TYPE } from '../../../server/wire/iana.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Observations } from './observations.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { MIN_OF_ONE_TYPE, OTHER_CONNECTIONS } from '../thresholds/transport.ts';

/** True if the server answered any client between these times. */
export function answeredBetween(
  observed: Observations,
  server: string,
  fromMs: number,
  toMs: number,
): boolean {
  const view = observed.servers.get(server) ?? observed.backends.get(server);
  if (view === undefined) return false;
  return view.history.some(
    ([second, { asked, lost }]) =>
      asked > lost && second * 1000 + 1000 > fromMs && second * 1000 < toMs,
  );
}

/**
 * True if other connections fail in the same way in these seconds, so neither the server nor its
 * sockets are at fault.
 */
export function hitsAllAlike(
  { others }: Observations,
  spans: readonly { readonly fromS: number; readonly toS: number }[],
): boolean {
  const meanwhile = spans.map(({ fromS, toS }) => others.between(fromS, toS));
  const opened = meanwhile.reduce((sum, each) => sum + each.opened, 0);
  const repeated = meanwhile.reduce((sum, each) => sum + each.repeated, 0);
  return opened >= OTHER_CONNECTIONS.opened && repeated >= OTHER_CONNECTIONS.repeated * opened;
}

/** True if only AAAA is lost. A silent server or socket also loses A. */
export function onlyAaaa(losses: readonly SeenExchange[]): boolean {
  return losses.length >= MIN_OF_ONE_TYPE && losses.every(({ type }) => type === TYPE.AAAA);
}

/** True if the capture has the server’s reply to this query, which was lost on its way back. */
export function wasAnswered({ stray, hops }: SeenExchange): boolean {
  return stray !== null || (hops.at(-1)?.repliedMs ?? null) !== null;
}

/**
 * Queries whose reply came from another address and was not used. The client keeps waiting, or the kernel reports that it
 * rejected the reply. (A forwarder retries from other sockets.)
 */
export function refusedStrays({ strays, refusedReplies }: Observations): readonly SeenExchange[] {
  return strays.filter(
    (each) =>
      isLost(each) ||
      [each, ...each.hops].some(
        ({ client }) => refusedReplies.get(`${client.address} ${client.port}`) === true,
      ),
  );
}

/** True if the capture has replies to most of these, so no server was silent. */
export function wentAstray(losses: readonly SeenExchange[]): boolean {
  return losses.filter(wasAnswered).length >= losses.length / 2;
}

/** Lost queries without the clients’ own repeats. */
export function firstTries(losses: readonly SeenExchange[]): readonly SeenExchange[] {
  return losses.filter(({ attempt }) => attempt === 1);
}

/**
 * True if a server is silent because it waits. It, or one behind its address, keeps querying a late
 * upstream and loses no cluster name. A stopped process sends nothing.
 */
export function waitsForOthers(
  observed: Observations,
  server: string,
  fromMs: number,
  toMs: number,
): boolean {
  const { backends, servers, slow, losses, domains } = observed;
  const clients = servers.get(server)?.clients ?? new Set();
  const own = new Set([
    server,
    ...backends.list.flatMap((view) =>
      [...view.clients].some((client) => clients.has(client)) ? view.address : [],
    ),
  ]);
  const isMeanwhile = ({ sentMs }: Pick<SeenExchange, 'sentMs'>): boolean =>
    sentMs >= fromMs && sentMs < toMs;
  const waited = slow.filter((each) => isMeanwhile(each) && own.has(each.client.address));
  return (
    waited.length >= MIN_CASES &&
    !losses.some(
      (loss) => isMeanwhile(loss) && own.has(loss.server.address) && domains.isOfCluster(loss.name),
    )
  );
}

/**
 * True if the client gets other replies from the server. A client without any is cut off, and may
 * be the only one for a while.
 */
export function isAnsweredElse(
  { clients }: Observations,
  { client, server }: SeenExchange,
): boolean {
  const counts = clients.get(client.address)?.servers.get(server.address);
  return counts !== undefined && counts.lost < counts.asked;
}

/** Queries without a reply over TCP connections on which no other query had been answered before. */
export function lostOverFreshTcp({ losses, connections }: Observations): readonly SeenExchange[] {
  const reused = new Set(connections.reused.lost.map(({ exchange }) => exchange));
  return losses.filter((loss) => loss.protocol === 'tcp' && !reused.has(loss));
}
