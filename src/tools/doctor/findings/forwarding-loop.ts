/** Name servers that query each other in a circle. */
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type FindingKind, type FoundCause } from './finding.ts';
import { listed, took } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { isLost, latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { appendTo } from '../../../server/base/append-to.ts';
import { isLoopbackHost } from '../../../server/base/ip.ts';
import { RCODE } from '../../../server/wire/iana.ts';
import { parentOf } from '../observe/domain-of-name.ts';
import { isFailure } from '../observe/outcomes.ts';
import { isServer } from '../observe/roles.ts';
import {
  LOOPING_SERVER,
  LOOP_AT_ONCE_MS,
  LOOP_COMES_BACK,
  LOOP_NEIGHBOURS,
  LOOP_RETURN_MS,
  LOOP_SECONDS,
  MAX_LOOP_SERVERS,
  MIN_LOOP_QUERIES,
  WAITING_LIMIT,
} from '../thresholds/errors.ts';
import { MIN_CASES, SAME_MOMENT_MS } from '../thresholds/evidence.ts';

/** The seconds for which queries wait for a looping one. */
const back: readonly number[] = Array.from({ length: LOOP_SECONDS }, (_, earlier) => earlier);

const loop: Omit<FoundCause, 'confidence' | 'seen'> = {
  severity: 'critical',
  why: 'A server forwards to another that forwards back to it. The node’s resolv.conf points to a stub on the node (127.0.0.53), the cluster’s own DNS address, or a corporate server that returns the cluster’s zone. A query loops until one of the servers gives up.',
  fix: [
    'Forward to the real upstream servers: use kubelet --resolv-conf /run/systemd/resolve/resolv.conf on nodes with systemd-resolved, or addresses in forward.',
    'Forward only the corporate servers’ own zones to them (a server block for these zones).',
  ],
  prove: 'run cat /etc/resolv.conf in the DNS pod, and check the forward lines in the Corefile',
  disproved:
    'the ids and times show that each query came from a client rather than from the other server',
};

export const forwardingLoop: FindingKind = {
  code: 'ND4004',
  title: 'Name servers forward to each other in a loop',
  name: 'a forwarding loop',
  inCapture(observed, claims) {
    const said = observed.counters.get('loopDetected') ?? 0;
    const returning = returningOf(observed);
    if (returning !== null) return returned(observed, claims, returning, 'with the same ids');
    const own = toItself(observed, claims);
    if (own !== null) return own;
    const renewed = renewedOf(observed);
    if (renewed !== null)
      return returned(observed, claims, renewed, 'while they are still unanswered');
    const both = observed.clients.list.filter(
      ({ address }) => isServer(observed, address) && !observed.serverNames.isShared(address),
    );
    if (both.length === 0 && said === 0)
      return unknown(
        observed.clients.list.some(({ address }) => observed.serverNames.isShared(address))
          ? 'several servers share one address, so the capture does not show which of them queries another'
          : 'no server in the capture queries another',
      );
    const circles = both
      .map(({ address }) => circleOf(observed, address))
      .filter((found) => found !== null);
    if (circles.length === 0 && said === 0)
      return excluded('no two servers query each other, directly or through others');
    // A looping query is not answered until a server gives up or refuses it (max_concurrent).
    // Otherwise, a program on the server's own host sends the query.
    const repeated = observed.names.list
      .filter(
        ({ outcomes: { asked, lost, servfail, refused } }) =>
          asked >= LOOPING_SERVER.queries &&
          lost + servfail + refused >= LOOPING_SERVER.failed * asked,
      )
      .toSorted((one, other) => other.outcomes.asked - one.outcomes.asked);
    // The same question has to loop. Two servers that query each other for different names are not
    // a circle.
    const asking = askedInVain(observed);
    const round = (circle: readonly string[]): typeof repeated =>
      repeated.filter(
        ({ name }) =>
          !(circle.length === 1 && name === HEALTH_CHECK) &&
          circle.every((address) => asking.get(name)?.has(address)),
      );
    const circle = circles.find((found) => round(found).length > 0) ?? circles[0];
    const going = circle === undefined ? repeated : round(circle);
    const names = going.map(({ name }) => name);
    if (said === 0 && names.length === 0) return excluded('no question loops');
    const keys = new Set(names);
    claims.take(claims.open.filter(({ name }) => keys.has(name)));
    explainCircle(observed, claims, circles, asking);
    return {
      ...loop,
      confidence: said > 0 ? 0.98 : 0.9,
      seen: [
        circle !== undefined && roundText(observed, circle),
        names.length > 0 &&
          `The same questions loop (${going[0]?.outcomes.asked ?? 0} times): ${listed(names)}`,
        said > 0 && 'CoreDNS’s loop plugin also reports a loop.',
        refusedText(observed, claims),
      ],
      exchanges: observed.losses.filter(({ name }) => keys.has(name)),
    };
  },
};

/**
 * The effect of a loop: looping names, and others of their zone, are lost, late or refused for all
 * clients while queries loop.
 */
function explainCircle(
  observed: Observations,
  claims: Claims,
  circles: readonly (readonly string[])[],
  asking: ReadonlyMap<string, ReadonlySet<string>>,
): void {
  const members = new Set(circles.flat());
  for (const all of [claims.late, claims.looping]) for (const address of members) all.add(address);
  const goesRound = (name: string): boolean =>
    circles.some((circle) => circle.every((address) => asking.get(name)?.has(address)));
  const going = new Set([...asking.keys()].filter(goesRound));
  const zones = new Set([...going].map(zoneOf));
  const loops = (name: string): boolean => going.has(name) || isBelowAny(name, zones);
  for (const name of asking.keys()) if (loops(name)) claims.names.add(name);
  const seconds = new Set(
    [...observed.losses, ...observed.failed].flatMap(({ name, client, sentMs }) =>
      going.has(name) && members.has(client.address) ? Math.floor(sentMs / 1000) : [],
    ),
  );
  const isMeanwhile = (sentMs: number): boolean =>
    back.some((earlier) => seconds.has(Math.floor((sentMs + SAME_MOMENT_MS) / 1000) - earlier));
  claims.take(
    claims.open.filter(
      ({ name, sentMs }) =>
        loops(name) &&
        // The servers answer cluster names from memory.
        !observed.domains.isOfCluster(name) &&
        isMeanwhile(sentMs),
    ),
  );
}

/**
 * The zone of a looping name, as far as the name shows it: its parent, or the name itself if it is
 * directly under a top-level domain.
 */
function zoneOf(name: string): string {
  const above = parentOf(name);
  return above.indexOf('.') < above.length - 1 ? above : name;
}

function isBelowAny(name: string, zones: ReadonlySet<string>): boolean {
  for (let at = name.indexOf('.') + 1; at > 0; at = name.indexOf('.', at) + 1)
    if (zones.has(name.slice(at))) return true;
  return false;
}

/** The clients that got no answer, or a failure, by name. */
function askedInVain({ losses, failed }: Observations): ReadonlyMap<string, ReadonlySet<string>> {
  const byName = [...Map.groupBy([...losses, ...failed], ({ name }) => name)];
  return new Map(
    byName.map(([name, all]) => [name, new Set(all.map(({ client }) => client.address))]),
  );
}

/**
 * The name that a forwarder's health checks query. A forwarder that queries its own address reaches
 * its neighbour there.
 */
const HEALTH_CHECK = '.';

/** True if the client sends this many queries to that server, also through a Service address. */
function asks(observed: Observations, client: string, server: string): boolean {
  if (asksDirectly(observed, client, server)) return true;
  const view = observed.backends.get(server);
  return view !== undefined && view.outcomes.asked >= MIN_LOOP_QUERIES && view.clients.has(client);
}

function asksDirectly({ clients }: Observations, client: string, server: string): boolean {
  return (clients.get(client)?.servers.get(server)?.asked ?? 0) >= MIN_LOOP_QUERIES;
}

/**
 * The shortest path from the server back to itself, where each server queries the next. Only the
 * server itself if it does so directly.
 */
function circleOf(observed: Observations, start: string): readonly string[] | null {
  const askedBy = new Map<string, string>();
  const visited = [start];
  for (const address of visited) {
    for (const next of askedFrom(observed, address)) {
      if (next === start) {
        const way = [address];
        for (let at = askedBy.get(address); at !== undefined; at = askedBy.get(at)) way.unshift(at);
        return way;
      }
      if (askedBy.has(next) || visited.length === MAX_LOOP_SERVERS) continue;
      askedBy.set(next, address);
      visited.push(next);
    }
  }
  return null;
}

function askedFrom(observed: Observations, address: string): readonly string[] {
  const behind = observed.backends.list.filter(({ clients }) => clients.has(address));
  const asked = [
    ...(observed.clients.get(address)?.servers.keys() ?? []),
    ...behind.map((view) => view.address),
  ];
  // A server known by address and port sends from the address alone. If several share one address,
  // the sender is unknown.
  return [...new Set(asked)]
    .filter((other) => asks(observed, address, other))
    .map((other) => observed.serverNames.hostOf(other))
    .filter((other) => !observed.serverNames.isShared(other));
}

function roundText(observed: Observations, circle: readonly string[]): string {
  const [address = '', ...others] = circle;
  if (others.length > 0)
    return `${address} queries ${others.join(', which queries ')}, which queries ${address}.`;
  const ways = [...(observed.clients.get(address)?.servers.keys() ?? [])];
  const own = observed.serverNames.only(address) ?? address;
  return `${address} queries itself${asksDirectly(observed, address, own) ? '' : `, through ${listed(ways)}`}.`;
}

/** Queries that return to the server that sent them, from an address that it did not query. */
interface Returning {
  readonly server: string;
  readonly asked: string;
  readonly from: string;
  readonly exchanges: readonly SeenExchange[];
}

/** The addresses of `Returning`, in this order, as a key. */
const keyOf = (...addresses: readonly string[]): string => addresses.join(' ');

/** Those that return most often. Null if these are few. */
function mostOf(found: ReadonlyMap<string, readonly SeenExchange[]>): Returning | null {
  const [most] = [...found].toSorted(([, one], [, other]) => other.length - one.length);
  const exchanges = [...new Set(most?.[1])];
  if (most === undefined || exchanges.length < MIN_LOOP_QUERIES) return null;
  const [server = '', asked = '', from = ''] = most[0].split(' ');
  return { server, asked, from, exchanges };
}

/** Lost queries, and those of slow or failed lookups. */
function suspectsOf({ losses, affected }: Observations): ReadonlySet<SeenExchange> {
  return new Set([...losses, ...affected.flatMap(({ exchanges }) => exchanges)]);
}

function inOrder(exchanges: Iterable<SeenExchange>): readonly SeenExchange[] {
  return [...exchanges].toSorted((one, other) => one.sentMs - other.sentMs);
}

const questionOf = ({ type, name }: SeenExchange): string => `${type} ${name}`;

/**
 * A circle of which the capture shows only one server's packets. The packets that return have the
 * address of a node or a gateway (SNAT), and the id with which they left. Null if nothing returns
 * in this way.
 */
function returningOf(observed: Observations): Returning | null {
  const found = new Map<string, SeenExchange[]>();
  const sorted = inOrder(suspectsOf(observed));
  for (const same of Map.groupBy(sorted, (each) => `${each.id} ${questionOf(each)}`).values()) {
    if (same.length < MIN_CASES) continue;
    for (const [at, back] of same.entries()) {
      const left = same
        .slice(0, at)
        .findLast(
          ({ client, server }) => isAskedOf(back, client.address) && server !== back.server,
        );
      if (left === undefined || back.sentMs - left.sentMs > LOOP_RETURN_MS) continue;
      // The original client may repeat its query.
      const first = same.find((each) => isAskedOf(each, left.client.address));
      const isOther = back.client.address !== left.client.address;
      if (!isOther || first === back || first?.client.address === back.client.address) continue;
      appendTo(found, keyOf(left.client.address, left.server.address, back.client.address), back);
    }
  }
  return mostOf(found);
}

/** True if the query goes to that address, also through a Service address. */
function isAskedOf({ server, hops }: SeenExchange, address: string): boolean {
  return server.address === address || hops.some((hop) => hop.server.address === address);
}

/**
 * A circle seen at one of its servers, where the others give each query a new id and port. Each
 * query that the server forwards returns to it at once. Null if there is no such circle.
 */
function renewedOf(observed: Observations): Returning | null {
  const onward = new Map<string, number>();
  const found = new Map<string, SeenExchange[]>();
  for (const same of Map.groupBy(suspectsOf(observed), questionOf).values()) {
    if (same.length < MIN_LOOP_QUERIES) continue;
    const list = inOrder(same);
    for (const [at, sent] of list.entries()) {
      const server = sent.client.address;
      const waiting = list
        .slice(Math.max(0, at - LOOP_NEIGHBOURS), at)
        .findLast((each) => isAskedOf(each, server) && isOpenAt(each, sent.sentMs));
      if (waiting === undefined || waiting.client.address === server) continue;
      const from = waiting.client.address;
      const key = keyOf(server, sent.server.address, from);
      onward.set(key, (onward.get(key) ?? 0) + 1);
      const next = list
        .slice(at + 1, at + LOOP_NEIGHBOURS)
        .find(
          (each) => each.client.address === from && isAskedOf(each, server) && each.attempt <= 1,
        );
      if (next === undefined || next.sentMs - sent.sentMs > LOOP_AT_ONCE_MS) continue;
      if (isOpenAt(sent, next.sentMs) && isOpenAt(waiting, next.sentMs)) appendTo(found, key, next);
    }
  }
  const most = mostOf(found);
  if (most === null) return null;
  const { server, asked, from, exchanges } = most;
  const all = onward.get(keyOf(server, asked, from))!;
  return exchanges.length < LOOP_COMES_BACK * all ? null : most;
}

/**
 * A server that forwards to a loopback address on which it listens itself. It sends each query that it receives
 * there to the same address again, before the first one is answered. (A program would retry later, and a local stub
 * would send its queries elsewhere.) Null if there is none.
 */
function toItself(observed: Observations, claims: Claims): FoundCause | null {
  const own = [...suspectsOf(observed)].filter(
    ({ client, server }) => isLoopbackHost(client.address) && isLoopbackHost(server.address),
  );
  for (const [server, theirs] of Map.groupBy(own, (each) => each.server.address)) {
    const failed = theirs.filter((each) => isLost(each) || isFailure(each));
    // "Port unreachable": nothing listens there, so nothing forwards there either.
    if (observed.unreachable.get(server) !== undefined) continue;
    if (failed.length < LOOPING_SERVER.failed * theirs.length) continue;
    const nested = [...Map.groupBy(theirs, questionOf).values()].flatMap((same) =>
      inOrder(same).filter((each, at, list) => {
        const before = list[at - 1];
        if (before === undefined || each.sentMs - before.sentMs > LOOP_AT_ONCE_MS) return false;
        return isOpenAt(before, each.sentMs) && each.client.port !== before.client.port;
      }),
    );
    if (nested.length < LOOPING_SERVER.queries || nested.length < LOOP_COMES_BACK * theirs.length)
      continue;
    const { names, lost } = takeNames(nested, claims);
    const mostMs = nested.reduce((most, each) => Math.max(most, latencyOf(each) ?? 0), 0);
    return {
      ...loop,
      title: `A name server forwards to itself through ${server}`,
      confidence: 0.95,
      seen: [
        `${server} got ${observed.servers.get(server)?.outcomes.asked ?? nested.length} queries from its own host. The same questions are sent to it again before the first query is answered (up to ${took(mostMs)} later), for ${listed(names)}`,
        'Packets to a loopback address stay in the pod or host that sends them, so the server that forwards there listens there itself.',
      ],
      why: `This DNS server’s upstream is ${server}, usually because the resolv.conf of a node with a local stub (systemd-resolved, dnsmasq) was copied into the DNS pod. Inside the pod, ${server} is the DNS server itself, so each external query loops until a limit (max_concurrent) or a timeout ends it with REFUSED or SERVFAIL.`,
      exchanges: [...nested, ...lost],
    };
  }
  return null;
}

/** Explains the names of looping queries, and takes the losses for them. */
function takeNames(
  looping: readonly SeenExchange[],
  claims: Claims,
): { readonly names: readonly string[]; readonly lost: readonly SeenExchange[] } {
  const names = new Set(looping.map(({ name }) => name));
  for (const name of names) claims.names.add(name);
  const lost = claims.open.filter(({ name }) => names.has(name));
  claims.take(lost);
  return { names: [...names], lost };
}

/** True if no reply had been sent by then. */
function isOpenAt({ repliedMs }: SeenExchange, ms: number): boolean {
  return repliedMs === null || repliedMs > ms;
}

function returned(
  observed: Observations,
  claims: Claims,
  { server, asked, from, exchanges }: Returning,
  how: string,
): FoundCause {
  const { names, lost } = takeNames(exchanges, claims);
  for (const address of [server, asked]) claims.late.add(address);
  for (const address of [server, asked, from]) claims.looping.add(address);
  return {
    ...loop,
    confidence: 0.88,
    seen: [
      `${server} queries ${asked}, and ${exchanges.length} of these queries come back to it from ${from} ${how}.`,
      `They are for ${listed(names)}`,
      refusedText(observed, claims),
    ],
    exchanges: [...exchanges, ...lost],
  };
}

/** Describes queries that the servers of a loop refuse at once, unless they are few. */
function refusedText({ failed }: Observations, { looping }: Claims): string | false {
  const atOnce = failed.filter(
    (each) =>
      each.rcode === RCODE.REFUSED &&
      looping.has(each.server.address) &&
      (latencyOf(each) ?? Infinity) < WAITING_LIMIT.atOnceMs,
  );
  return (
    atOnce.length >= MIN_CASES &&
    `These servers refused ${atOnce.length} queries at once, because looping queries use up their limit on waiting queries.`
  );
}
