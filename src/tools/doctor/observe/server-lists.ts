/** Clients that have a list of servers, or spread their queries over several. */
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Observations } from './observations.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import {
  ASKED_AT_ONCE_MS,
  MAX_STAYED,
  MIN_ASKED_OF_LIST,
  MIN_WENT_ON,
} from '../thresholds/silence.ts';

/** Other servers that answer the client. */
export function answeredElsewhere(
  { clients }: Observations,
  client: string,
  server: string,
): readonly { readonly address: string; readonly asked: number }[] {
  return [...(clients.get(client)?.servers ?? [])].flatMap(([address, { asked, lost }]) =>
    address !== server && asked - lost >= MIN_CASES ? [{ address, asked }] : [],
  );
}

/**
 * True if the client spreads its queries over several servers, as forwarders and caches do, and
 * Services if the capture shows only pods. A client that tries the next server of its resolv.conf
 * queries that one as often, and no third, or retries there.
 */
export function asksInTurn(observed: Observations, client: string, server: string): boolean {
  if (goesOn(observed, client, server)) return false;
  const others = answeredElsewhere(observed, client, server);
  const asked = observed.clients.get(client)?.servers.get(server)?.asked ?? 0;
  return (
    others.length >= 2 ||
    others.some(
      (other) =>
        other.asked >= 2 * asked || askedBothWhenWell(observed, client, [server, other.address]),
    )
  );
}

/**
 * True if the client retries lost queries at another server with the same ids: it follows a list of
 * servers. Behind a Service address, a retry stays with its socket, and a new socket has a new id.
 */
function goesOn({ affected }: Observations, client: string, server: string): boolean {
  let [count, stayed] = [0, 0];
  for (const lookup of affected)
    if (lookup.client === client)
      for (const one of lookup.exchanges) {
        if (one.server.address !== server || !isLost(one)) continue;
        // c-ares may retry from a new socket, which may reach any server, also the same one. A
        // client that follows a list does not.
        if (isAskedAnew(one, lookup.exchanges)) stayed++;
        else if (isTakenOn(one, lookup.exchanges)) count++;
      }
  return count >= MIN_WENT_ON && stayed <= MAX_STAYED * count;
}

/**
 * True if the next query with this question and id goes to the same server, from another socket.
 */
function isAskedAnew(one: SeenExchange, exchanges: readonly SeenExchange[]): boolean {
  const next = exchanges.find(
    ({ sentMs, id, type, name }) =>
      sentMs > one.sentMs && id === one.id && type === one.type && name === one.name,
  );
  return (
    next !== undefined &&
    next.server.address === one.server.address &&
    next.client.port !== one.client.port
  );
}

function isTakenOn(one: SeenExchange, exchanges: readonly SeenExchange[]): boolean {
  return exchanges.some(
    (other) =>
      other.server.address !== one.server.address &&
      other.sentMs > one.sentMs - ASKED_AT_ONCE_MS &&
      other.id === one.id &&
      other.type === one.type &&
      other.name === one.name,
  );
}

/**
 * True if the client had used each of them from several sockets before anything was lost: a client
 * with a list uses its first server.
 */
function askedBothWhenWell(
  { flows, losses }: Observations,
  client: string,
  servers: readonly string[],
): boolean {
  const lostMs = losses
    .filter((loss) => loss.client.address === client && servers.includes(loss.server.address))
    .reduce((least, { sentMs }) => Math.min(least, sentMs), Infinity);
  return servers.every(
    (server) =>
      flows.to(server).filter((flow) => flow.client === client && flow.firstReplyMs < lostMs)
        .length >= MIN_ASKED_OF_LIST,
  );
}

/**
 * True if the client has a list of servers, and this one, which leaves queries without replies, is
 * the first: it began with it, and used one other at most as often, for unanswered queries. Or it
 * used no other until several names had failed, and then avoids it, as c-ares does. A client whose
 * queries reach one of several pods meets the others from the beginning, and all of them.
 */
export function hasItFirst(observed: Observations, client: string, server: string): boolean {
  const others = answeredElsewhere(observed, client, server);
  if (others.length > 0 && goesOn(observed, client, server)) return true;
  if (others.length !== 1) return false;
  const elsewhereMs = observed.flows.list
    .filter((flow) => flow.client === client && flow.server !== server)
    .reduce((least, { firstMs }) => Math.min(least, firstMs), Infinity);
  const lost = observed.losses.filter(
    (loss) =>
      loss.client.address === client &&
      loss.server.address === server &&
      loss.sentMs < elsewhereMs + ASKED_AT_ONCE_MS,
  );
  if (lost.length === 0) return false;
  const asked = observed.clients.get(client)?.servers.get(server)?.asked ?? 0;
  if (asked >= MIN_ASKED_OF_LIST && others[0]!.asked <= asked) return true;
  const answeredAlone = observed.flows
    .to(server)
    .filter((flow) => flow.client === client && flow.firstReplyMs < elsewhereMs)
    .reduce((sum, flow) => sum + flow.asked - flow.lost, 0);
  return new Set(lost.map(({ name }) => name)).size + answeredAlone >= MIN_ASKED_OF_LIST;
}
