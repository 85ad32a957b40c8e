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

/** Servers, besides this one, that answer the client. */
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
 * Whether the client spreads its queries over several servers, of which this one is, as forwarders
 * and caches do, and services where the capture shows the pods alone. Who goes on to the next of
 * its resolv.conf where one is silent asks that one as often, and no third, or says the same once
 * more there.
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
 * Whether the client takes what the server leaves without a reply to another one, with the same
 * ids: it has a list of servers, and goes along it. Behind the address of a service a repeat stays
 * with its socket, and a new socket comes with a new id.
 */
function goesOn({ affected }: Observations, client: string, server: string): boolean {
  let [count, stayed] = [0, 0];
  for (const lookup of affected)
    if (lookup.client === client)
      for (const one of lookup.exchanges) {
        if (one.server.address !== server || !isLost(one)) continue;
        // c-ares may repeat from a new socket, which is taken where chance wants: to the same
        // server as well. Who goes along a list does not ask it twice.
        if (isAskedAnew(one, lookup.exchanges)) stayed++;
        else if (isTakenOn(one, lookup.exchanges)) count++;
      }
  return count >= MIN_WENT_ON && stayed <= MAX_STAYED * count;
}

/**
 * Whether the next one to ask this question with this id is asked the same server, from another
 * socket.
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
 * Whether, before anything was lost, the client had asked each of them from several sockets: who
 * has a list asks its first.
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
 * Whether the client has a list of servers of which this one, which leaves queries without replies,
 * is the first: it began with it, and asks one other as often at most, for what it got no reply to;
 * or it asked nobody else until it had got no reply for several names, and has learned since to
 * leave it out, as c-ares does. Who is taken to one of several pods finds others from the
 * beginning, and all of them.
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
