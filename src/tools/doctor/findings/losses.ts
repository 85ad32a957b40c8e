/** Questions about queries and servers that several rules ask. */
import { TYPE } from '../../../server/wire/iana.ts';
import type { ClientView, Observations } from '../observe/observations.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';

/** Some ask all servers of their list at once, one after the other, milliseconds. */
const AT_ONCE_MS = 5;
/** Fewer answers are chance. */
const ANSWERED_LEAST = 3;
/** So many queries tell how often a client asks one server, and another. */
const ASKED_LEAST = 4;

/** Whether the server answered anybody between these times. */
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

/** So many other connections, and so many of them, have to repeat their first packet. */
const OTHERS = { least: 5, share: 0.5 };

/** Whether other connections fare alike meanwhile: then it is no server, and no socket of one. */
export function hitsAllAlike({ others }: Observations, fromS: number, toS: number): boolean {
  const { opened, repeated } = others.between(fromS, toS);
  return opened >= OTHERS.least && repeated >= OTHERS.share * opened;
}

/** So many queries are hardly of one type by chance: programs ask for A as often. */
const OF_ONE_TYPE = 5;

/**
 * Whether only AAAA is lost: what is silent, be it a server or a socket, leaves A without a reply
 * as well.
 */
export function onlyAaaa(losses: readonly SeenExchange[]): boolean {
  return losses.length >= OF_ONE_TYPE && losses.every(({ type }) => type === TYPE.AAAA);
}

/**
 * Whether the capture has a reply of the server to this lost query, which went astray on its way
 * back.
 */
export function wasAnswered({ stray, hops }: SeenExchange): boolean {
  return stray !== null || (hops.at(-1)?.repliedMs ?? null) !== null;
}

/** Whether replies to most of these are in the capture: then no server was silent. */
export function wentAstray(losses: readonly SeenExchange[]): boolean {
  return losses.filter(wasAnswered).length >= losses.length / 2;
}

/** Lost queries that were sent while the clients’ own repeats are left out: each question once. */
export function firstTries(losses: readonly SeenExchange[]): readonly SeenExchange[] {
  return losses.filter(({ attempt }) => attempt === 1);
}

/**
 * Whether two servers stand for each other: some client asks both, by their own addresses or by
 * that of a service.
 */
export function serveTheSame(
  { servers, backends }: Observations,
  one: string,
  other: string,
): boolean {
  const clientsOf = (server: string): readonly string[] => [
    ...(servers.get(server)?.clients ?? []),
    ...(backends.get(server)?.clients ?? []),
  ];
  const theirs = new Set(clientsOf(other));
  return clientsOf(one).some((client) => theirs.has(client));
}

/** Servers, besides this one, that answer the client. */
export function answeredElsewhere(
  { clients }: Observations,
  client: string,
  server: string,
): readonly { readonly address: string; readonly asked: number }[] {
  return [...(clients.get(client)?.servers ?? [])].flatMap(([address, { asked, lost }]) =>
    address !== server && asked - lost >= ANSWERED_LEAST ? [{ address, asked }] : [],
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

/** So many questions that were asked once more of another server are no chance. */
const WENT_ON = 2;
/** And so few, for each of these, that were asked once more of the same. */
const STAYED = 0.1;

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
  return count >= WENT_ON && stayed <= STAYED * count;
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
      other.sentMs > one.sentMs - AT_ONCE_MS &&
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
        .length >= ASKED_LEAST,
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
      loss.sentMs < elsewhereMs + AT_ONCE_MS,
  );
  if (lost.length === 0) return false;
  const asked = observed.clients.get(client)?.servers.get(server)?.asked ?? 0;
  if (asked >= ASKED_LEAST && others[0]!.asked <= asked) return true;
  const answeredAlone = observed.flows
    .to(server)
    .filter((flow) => flow.client === client && flow.firstReplyMs < elsewhereMs)
    .reduce((sum, flow) => sum + flow.asked - flow.lost, 0);
  return new Set(lost.map(({ name }) => name)).size + answeredAlone >= ASKED_LEAST;
}

/** So many late replies to a server, while it gives none itself, show that it waits for them. */
const WAITED_LEAST = 3;

/**
 * Whether a server is silent because it waits: it, or one behind its address, goes on asking
 * somebody whose replies are late, and no name of the cluster is lost that it would have in memory.
 * A process that stands still asks nobody.
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
    waited.length >= WAITED_LEAST &&
    !losses.some(
      (loss) => isMeanwhile(loss) && own.has(loss.server.address) && domains.isOfCluster(loss.name),
    )
  );
}

/**
 * Whether the client is answered other queries by the server: who never is, is cut off, and may be
 * the only one that asks for a while.
 */
export function isAnsweredElse(
  { clients }: Observations,
  { client, server }: SeenExchange,
): boolean {
  const counts = clients.get(client.address)?.servers.get(server.address);
  return counts !== undefined && counts.lost < counts.asked;
}

/**
 * Servers that are asked for names of the cluster: those that found some, and those that did not
 * find some.
 */
export function askedForCluster({ names, domains }: Observations): {
  readonly found: ReadonlySet<string>;
  readonly other: ReadonlySet<string>;
} {
  const [withSome, without] = [new Set<string>(), new Set<string>()];
  for (const { name, servers } of names.list)
    if (domains.isOfCluster(name))
      for (const [address, { found }] of servers) (found > 0 ? withSome : without).add(address);
  return { found: withSome, other: without };
}

/**
 * Servers that are asked for names of outside only, where others are asked for names of the
 * cluster: what stands behind these.
 */
export function upstreams({ names, domains }: Observations): ReadonlySet<string> {
  const inside = new Set<string>();
  const all = new Set<string>();
  for (const { name, servers } of names.list)
    for (const [address] of servers) {
      all.add(address);
      if (domains.isOfCluster(name)) inside.add(address);
    }
  return new Set(inside.size === 0 ? [] : [...all].filter((address) => !inside.has(address)));
}

/**
 * Whether the client is a name server itself, which asks for others; or, where several share an
 * address, may be one.
 */
export function isServer(
  { servers, backends, serverNames }: Observations,
  address: string,
): boolean {
  return (
    servers.get(address) !== undefined ||
    backends.get(address) !== undefined ||
    serverNames.has(address)
  );
}

/** Clients that are no name servers themselves; all, where the capture shows none but these. */
export function programs(observed: Observations): readonly ClientView[] {
  const { list } = observed.clients;
  const theirs = list.filter(({ address }) => !isServer(observed, address));
  return theirs.length > 0 ? theirs : list;
}

/** `3 clients`, `1 client and 2 DNS servers`: these, by what they are in the capture. */
export function askersText(observed: Observations, addresses: Iterable<string>): string {
  const all = [...new Set(addresses)];
  const servers = all.filter((address) => isServer(observed, address)).length;
  const clients = all.length - servers;
  const counted = (count: number, word: string): readonly string[] =>
    count === 0 ? [] : [`${count} ${word}${count === 1 ? '' : 's'}`];
  return [...counted(clients, 'client'), ...counted(servers, 'DNS server')].join(' and ');
}

/** How many names A and AAAA were compared for, where they agree. */
export function pairsText({ names }: Observations): string {
  const both = names.list.filter(
    ({ type, name }) => type === TYPE.A && names.get(name, TYPE.AAAA) !== undefined,
  ).length;
  return `A and AAAA agree whether ${both} names exist`;
}
