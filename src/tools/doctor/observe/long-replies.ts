/**
 * Replies over UDP that are longer than something on the way lets pass, though none of them is in
 * fragments.
 */
import { TYPE, typeName } from '../../../server/wire/iana.ts';
import type { NameView } from './name-view.ts';
import type { Observations } from './observations.ts';
import {
  bytesOf,
  sentSpan,
  UDP_BYTES,
  type SeenExchange,
} from '../../capture/pair/seen-exchange.ts';
import { listed } from '../texts.ts';
import { type Claims } from './claims.ts';
import { choices } from './dead-names.ts';
import { wasAnswered } from './losses.ts';
import { MAX_CHANCE, MIN_CASES, MOST } from '../thresholds/evidence.ts';
import { LONG_AT_TIMES, LONG_UNSEEN, RETRY_MS } from '../thresholds/transport.ts';

/** Lost queries with EDNS whose answers are long. */
export interface LongReplies {
  /** Bytes of the longest reply that arrives, or those that DNS has without EDNS. */
  readonly limit: number;
  readonly losses: readonly SeenExchange[];
  readonly seen: string;
}

/**
 * Lost queries with EDNS whose answers are all too long for the way; null: other sizes are lost as
 * well.
 */
export function longReplies(observed: Observations, claims: Claims): LongReplies | null {
  return (
    longOnes(observed, claims) ??
    longAtTimes(observed, claims) ??
    strandedOnes(observed, claims) ??
    unseenOnes(observed, claims) ??
    unseenOfOneName(observed, claims)
  );
}

/**
 * Losses of names whose replies are longer than all that arrive at the time, and than DNS without EDNS allows.
 */
function longOnes(observed: Observations, claims: Claims): LongReplies | null {
  const { names, servers } = observed;
  const { comparable, sizeOf } = comparableOf(observed, claims);
  const { fromMs, toMs } = sentSpan(comparable.filter((loss) => sizeOf(loss) > UDP_BYTES));
  const limit = comparable.reduce(
    (most, { server }) =>
      Math.max(most, servers.get(server.address)?.longestBetween(fromMs, toMs) ?? 0),
    UDP_BYTES,
  );
  const losses = comparable.filter((loss) => sizeOf(loss) > limit);
  const isChance =
    losses.length < MIN_CASES ||
    losses.length < MOST * comparable.length ||
    longShare(names.list, limit) ** losses.length >= MAX_CHANCE;
  if (isChance) return null;
  return {
    limit,
    losses,
    seen: `${losses.length} queries with EDNS whose answers exceed ${limit} bytes (${namesOf(losses)}) got no reply, and no reply of more than ${limit} bytes arrived over UDP during that time. Shorter ones arrived.`,
  };
}

/** Those that are lost at times, and come at others; short ones always come. */
function longAtTimes(observed: Observations, claims: Claims): LongReplies | null {
  const { comparable, sizeOf } = comparableOf(observed, claims);
  const least = comparable.reduce((size, loss) => Math.min(size, sizeOf(loss)), Infinity);
  // One more short loss is chance.
  const limit = least > UDP_BYTES ? least - 1 : UDP_BYTES;
  const losses = comparable.filter((loss) => sizeOf(loss) > limit);
  if (losses.length < comparable.length - 1 || losses.length < MOST * comparable.length)
    return null;
  const lookups = lookupsOf(losses);
  if (lookups < LONG_AT_TIMES.lookups) return null;
  if (longShare(observed.names.list, limit) ** lookups >= LONG_AT_TIMES.chance) return null;
  return {
    limit,
    losses,
    seen: `${losses.length} queries with EDNS in ${lookups} lookups got no reply (${namesOf(losses)}). When their answers do arrive, they exceed ${limit} bytes. Shorter answers always arrive.`,
  };
}

/**
 * Replies that were seen on their way and did not reach the client, all of them longer than any that did.
 */
function strandedOnes({ clients }: Observations, { open }: Claims): LongReplies | null {
  const stranded = open.filter((loss) => loss.protocol === 'udp' && wasAnswered(loss));
  const limit = stranded.reduce(
    (most, { client, server }) =>
      Math.max(most, clients.get(client.address)?.servers.get(server.address)?.longest ?? 0),
    UDP_BYTES,
  );
  const losses = stranded.filter((loss) => bytesOf(loss) > limit);
  const arrived = losses.reduce((sum, { client, server }) => {
    const { asked = 0, lost = 0 } = clients.get(client.address)?.servers.get(server.address) ?? {};
    return Math.max(sum, asked - lost);
  }, 0);
  const isChance =
    losses.length < MIN_CASES ||
    losses.length < MOST * open.length ||
    arrived < MIN_CASES ||
    // If loss did not depend on the size, these would hardly all be the longest ones.
    -choices(arrived + losses.length, losses.length) >= Math.log(MAX_CHANCE);
  if (isChance) return null;
  const servers = [...new Set(losses.map(({ server }) => server.address))];
  return {
    limit,
    losses,
    seen: `${losses.length} replies of up to ${Math.max(...losses.map(bytesOf))} bytes from ${listed(servers)} (${namesOf(losses)}) were seen in transit but did not reach the client. ${arrived} replies of up to ${limit} bytes did.`,
  };
}

/**
 * One name of which one type is never answered, although other types of the name are, and other names of the type. No
 * filter by name or type drops that, and the server truncates replies to queries without EDNS.
 */
function unseenOfOneName(observed: Observations, { open }: Claims): LongReplies | null {
  const { names, servers, truncated } = observed;
  const losses = open.filter((loss) => allowsLong(observed, loss));
  const [first] = losses;
  if (first === undefined || losses.length < LONG_UNSEEN.alone || losses.length < open.length)
    return null;
  const { name, type, server } = first;
  const view = servers.get(server.address);
  const isOne = losses.every(
    (loss) => loss.name === name && loss.type === type && loss.server.address === server.address,
  );
  if (!isOne || view === undefined || (names.get(name, type)?.longest ?? 0) > 0) return null;
  const cut = truncated.filter(
    (each) => each.server.address === server.address && each.udpSize === 0 && each.name !== name,
  );
  const other = names.list.find(
    (each) => each.name === name && each.type !== type && each.longest > 0,
  );
  const arrived = view.edns.asked - view.edns.lost;
  const longest = view.longestBetween(-Infinity, Infinity);
  if (cut.length === 0 || other === undefined || arrived === 0 || longest > UDP_BYTES) return null;
  return {
    limit: UDP_BYTES,
    losses,
    seen: `${losses.length} queries with EDNS for ${typeName(type)} records of ${namesOf(losses)} got no reply from ${server.address}, while queries with EDNS for other records of that name did. No UDP reply of more than ${longest} bytes arrived from there. The server has longer answers, since it truncates replies to queries without EDNS (${namesOf(cut)}).`,
  };
}

/**
 * Losses whose size is unknown because no client gets an answer: of some names one type is never
 * answered, and another one, without records, always is. (If it is only AAAA, that has another
 * cause.)
 */
function unseenOnes(observed: Observations, { open }: Claims): LongReplies | null {
  const { names, servers, losses: all } = observed;
  const lost = open.filter((loss) => allowsLong(observed, loss));
  const losses = lost.filter(({ name, type }) => {
    const view = names.get(name, type);
    return view !== undefined && view.longest === 0 && view.outcomes.asked === view.outcomes.lost;
  });
  const hit = new Set(losses.map(({ name }) => name));
  if (losses.length < LONG_UNSEEN.queries || hit.size < LONG_UNSEEN.names) return null;
  if (
    losses.length < LONG_UNSEEN.share * lost.length ||
    losses.some(({ type }) => type === TYPE.AAAA)
  )
    return null;
  const spared = new Set<string>();
  for (const { name, outcomes } of names.list)
    if (hit.has(name) && outcomes.nodata > 0 && outcomes.lost === 0) spared.add(name);
  const asked = new Set(losses.map(({ server }) => server.address));
  const answered = servers.list
    .filter(({ address }) => asked.has(address))
    .reduce((sum, { edns }) => sum + edns.asked - edns.lost, 0);
  if (spared.size < hit.size || answered < LONG_UNSEEN.answered || all.length > 2 * losses.length)
    return null;
  return {
    limit: UDP_BYTES,
    losses,
    seen: `${losses.length} queries with EDNS for records of ${namesOf(losses)} never got a reply, however often they were repeated. Queries for record types that these names do not have always did, and so did ${answered} others with EDNS, so short replies arrive.`,
  };
}

/** The number of lookups among these: a client without a reply retries. */
function lookupsOf(losses: readonly SeenExchange[]): number {
  const last = new Map<string, number>();
  let count = 0;
  for (const { client, name, sentMs } of losses.toSorted((a, b) => a.sentMs - b.sentMs)) {
    const key = `${client.address} ${name}`;
    if (sentMs - (last.get(key) ?? -Infinity) > RETRY_MS) count++;
    last.set(key, sentMs);
  }
  return count;
}

/** Lost queries with EDNS of which it is known how long their answers are. */
function comparableOf(
  observed: Observations,
  { open }: Claims,
): {
  readonly comparable: readonly SeenExchange[];
  readonly sizeOf: (loss: SeenExchange) => number;
} {
  const sizeOf = ({ type, name }: SeenExchange): number =>
    observed.names.get(name, type)?.longest ?? 0;
  const comparable = open.filter((loss) => allowsLong(observed, loss) && sizeOf(loss) > 0);
  return { comparable, sizeOf };
}

/**
 * True if a query over UDP allows replies larger than 512 bytes. In a cut capture the presence of
 * an OPT record is enough: (nearly) all clients that send one allow more.
 */
function allowsLong({ cut }: Observations, { protocol, udpSize }: SeenExchange): boolean {
  return protocol === 'udp' && (udpSize > UDP_BYTES || (udpSize === UDP_BYTES && cut.messages > 0));
}

/** The share of queries for names whose answers have more bytes. */
function longShare(names: readonly NameView[], limit: number): number {
  return queriesFor(names.filter(({ longest }) => longest > limit)) / queriesFor(names);
}

export function queriesFor(names: readonly NameView[]): number {
  return names.reduce((sum, { outcomes }) => sum + outcomes.asked, 0);
}

function namesOf(losses: readonly SeenExchange[]): string {
  return listed([...new Set(losses.map(({ name }) => name))]);
}
