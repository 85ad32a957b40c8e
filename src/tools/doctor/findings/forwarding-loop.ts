/** Name servers that query each other in a circle. */
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type FindingKind, type FoundCause } from './finding.ts';
import { listed, took } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { isLost, latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
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

/** Servers forward to each other, or to themselves, in a loop. */
export const forwardingLoop: FindingKind = {
  code: 'ND4004',
  title: 'Name servers forward to each other in a loop',
  name: 'a forwarding loop',
  inCapture(observed, claims) {
    const said = observed.counters.get('loopDetected') ?? 0;
    const returning = returningOf(observed);
    if (returning !== null) return returned(observed, claims, returning, 'with the same ids');
    const own = onLoopback(observed);
    if (own !== null) return toItself(observed, claims, own);
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
        ...refusedText(observed, claims),
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
  for (const address of members) {
    claims.late.add(address);
    claims.looping.add(address);
  }
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
  const found = new Map<string, Set<string>>();
  for (const { name, client } of [...losses, ...failed]) {
    const clients = found.get(name);
    if (clients === undefined) found.set(name, new Set([client.address]));
    else clients.add(client.address);
  }
  return found;
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

/** Servers that the server queries. */
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

/**
 * A circle of which the capture shows only one server's packets. The packets that return have the
 * address of a node or a gateway (SNAT), and the id with which they left. Null if nothing returns
 * in this way.
 */
function returningOf({ losses, affected }: Observations): Returning | null {
  const all = new Set([...losses, ...affected.flatMap(({ exchanges }) => exchanges)]);
  const byQuestion = Map.groupBy(
    [...all].toSorted((one, other) => one.sentMs - other.sentMs),
    ({ id, type, name }) => `${id} ${type} ${name}`,
  );
  const found = new Map<string, SeenExchange[]>();
  for (const same of byQuestion.values()) {
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
      const key = [left.client.address, left.server.address, back.client.address].join(' ');
      const list = found.get(key);
      if (list === undefined) found.set(key, [back]);
      else list.push(back);
    }
  }
  const [most] = [...found].toSorted(([, one], [, other]) => other.length - one.length);
  if (most === undefined || most[1].length < MIN_LOOP_QUERIES) return null;
  const [server = '', asked = '', from = ''] = most[0].split(' ');
  return { server, asked, from, exchanges: most[1] };
}

/** True if the query goes to that address, also through a Service address. */
function isAskedOf({ server, hops }: SeenExchange, address: string): boolean {
  return server.address === address || hops.some((hop) => hop.server.address === address);
}

/**
 * A circle seen at one of its servers, where the others give each query a new id and port. Each
 * query that the server forwards returns to it at once. Null if there is no such circle.
 */
function renewedOf({ losses, affected }: Observations): Returning | null {
  const all = new Set([...losses, ...affected.flatMap(({ exchanges }) => exchanges)]);
  const found = new Map<string, { onward: number; again: SeenExchange[] }>();
  for (const same of Map.groupBy(all, ({ type, name }) => `${type} ${name}`).values()) {
    if (same.length < MIN_LOOP_QUERIES) continue;
    const list = same.toSorted((one, other) => one.sentMs - other.sentMs);
    for (const [at, onward] of list.entries()) {
      const server = onward.client.address;
      const waiting = list
        .slice(Math.max(0, at - LOOP_NEIGHBOURS), at)
        .findLast((each) => isAskedOf(each, server) && isOpenAt(each, onward.sentMs));
      if (waiting === undefined || waiting.client.address === server) continue;
      const from = waiting.client.address;
      const key = [server, onward.server.address, from].join(' ');
      const counted = found.get(key) ?? { onward: 0, again: [] };
      found.set(key, counted);
      counted.onward++;
      for (const next of list.slice(at + 1, at + LOOP_NEIGHBOURS)) {
        if (next.sentMs - onward.sentMs > LOOP_AT_ONCE_MS) break;
        if (next.client.address !== from || !isAskedOf(next, server) || next.attempt > 1) continue;
        if (isOpenAt(onward, next.sentMs) && isOpenAt(waiting, next.sentMs))
          counted.again.push(next);
        break;
      }
    }
  }
  const [most] = [...found].toSorted(([, one], [, other]) => other.again.length - one.again.length);
  if (most === undefined) return null;
  const [key, { onward, again }] = most;
  const exchanges = [...new Set(again)];
  if (exchanges.length < MIN_LOOP_QUERIES || exchanges.length < LOOP_COMES_BACK * onward)
    return null;
  const [server = '', asked = '', from = ''] = key.split(' ');
  return { server, asked, from, exchanges };
}

/** Queries of a host to itself, most of which were sent while the same question was still unanswered. */
interface OnLoopback {
  readonly server: string;
  readonly nested: readonly SeenExchange[];
}

/**
 * Detects a server that forwards to a loopback address on which it listens itself. It sends each query that it receives
 * there to the same address again, before the first one is answered. (A program would retry later, and a local stub
 * would send its queries elsewhere.) Null if there is none.
 */
function onLoopback({ losses, affected, unreachable }: Observations): OnLoopback | null {
  const all = new Set([...losses, ...affected.flatMap(({ exchanges }) => exchanges)]);
  const own = [...all].filter(
    ({ client, server }) => isLoopbackHost(client.address) && isLoopbackHost(server.address),
  );
  for (const [server, theirs] of Map.groupBy(own, (each) => each.server.address)) {
    const failed = theirs.filter((each) => isLost(each) || isFailure(each));
    // "Port unreachable": nothing listens there, so nothing forwards there either.
    if (unreachable.get(server) !== undefined) continue;
    if (failed.length < LOOPING_SERVER.failed * theirs.length) continue;
    const nested = [...Map.groupBy(theirs, ({ type, name }) => `${type} ${name}`).values()].flatMap(
      (same) => {
        const list = same.toSorted((one, other) => one.sentMs - other.sentMs);
        return list.filter((each, at) => {
          const before = list[at - 1];
          if (before === undefined || each.sentMs - before.sentMs > LOOP_AT_ONCE_MS) return false;
          return isOpenAt(before, each.sentMs) && each.client.port !== before.client.port;
        });
      },
    );
    if (nested.length >= LOOPING_SERVER.queries && nested.length >= LOOP_COMES_BACK * theirs.length)
      return { server, nested };
  }
  return null;
}

function toItself(
  observed: Observations,
  claims: Claims,
  { server, nested }: OnLoopback,
): FoundCause {
  const names = new Set(nested.map(({ name }) => name));
  for (const name of names) claims.names.add(name);
  const lost = claims.open.filter(({ name }) => names.has(name));
  claims.take(lost);
  const mostMs = nested.reduce((most, each) => Math.max(most, latencyOf(each) ?? 0), 0);
  return {
    ...loop,
    title: `A name server forwards to itself through ${server}`,
    confidence: 0.95,
    seen: [
      `${server} got ${observed.servers.get(server)?.outcomes.asked ?? nested.length} queries from its own host. The same questions are sent to it again before the first query is answered (up to ${took(mostMs)} later), for ${listed([...names])}`,
      'Packets to a loopback address stay in the pod or host that sends them, so the server that forwards there listens there itself.',
    ],
    why: `This DNS server’s upstream is ${server}, usually because the resolv.conf of a node with a local stub (systemd-resolved, dnsmasq) was copied into the DNS pod. Inside the pod, ${server} is the DNS server itself, so each external query loops until a limit (max_concurrent) or a timeout ends it with REFUSED or SERVFAIL.`,
    exchanges: [...nested, ...lost],
  };
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
  const names = new Set(exchanges.map(({ name }) => name));
  for (const name of names) claims.names.add(name);
  for (const address of [server, asked]) {
    claims.late.add(address);
    claims.looping.add(address);
  }
  claims.looping.add(from);
  const lost = claims.open.filter(({ name }) => names.has(name));
  claims.take(lost);
  return {
    ...loop,
    confidence: 0.88,
    seen: [
      `${server} queries ${asked}, and ${exchanges.length} of these queries come back to it from ${from} ${how}.`,
      `They are for ${listed([...names])}`,
      ...refusedText(observed, claims),
    ],
    exchanges: [...exchanges, ...lost],
  };
}

/** Describes queries that the servers of a loop refuse at once; empty if there are few. */
function refusedText({ failed }: Observations, { looping }: Claims): readonly string[] {
  const atOnce = failed.filter(
    (each) =>
      each.rcode === RCODE.REFUSED &&
      looping.has(each.server.address) &&
      (latencyOf(each) ?? Infinity) < WAITING_LIMIT.atOnceMs,
  );
  return atOnce.length < MIN_CASES
    ? []
    : [
        `These servers refused ${atOnce.length} queries at once, because looping queries use up their limit on waiting queries.`,
      ];
}
