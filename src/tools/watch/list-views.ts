/** The lists of clients, names and servers. */
import { typeName } from '../../server/wire/iana.ts';
import type { ClientResolvers } from './client-resolvers.ts';
import type { KeySum } from './key-counts.ts';
import {
  byMost,
  byText,
  listRows,
  orElse,
  type LeftOutOfList,
  type RowOrder,
} from './list-rows.ts';
import { oddOnes } from './odd-one.ts';
import { addressOfId, type Parties } from './parties.ts';
import { endpointOfServer } from './server-id.ts';
import type { ClientRow, Listed, NameRow, Party, ServerRow, ViewQuery } from './view.ts';
import type { ClientExtra, NameExtra, ServerExtra, WindowCounts } from './window-counts.ts';

/** The maximum number of clients counted separately for each name. */
const CLIENTS_OF_NAME = 64;

export interface ListParts {
  readonly counts: WindowCounts;
  readonly parties: Parties;
  readonly resolvers: ClientResolvers;
  readonly fromMs: number;
  readonly leftOut: Pick<LeftOutOfList, 'lostByKernel' | 'sampledShare'>;
}

type Sum<Extra> = KeySum<Extra>;

export function clientRows(parts: ListParts, query: ViewQuery<'clients'>): Listed<ClientRow> {
  const { counts, parties, resolvers, fromMs } = parts;
  const sums = [...counts.clients.sums(fromMs).values()];
  const servers = serverAddresses(counts, fromMs);
  const partyOf = ({ key, tally }: Sum<ClientExtra>): Party =>
    parties.at(addressOfId(key), tally.lastMs);
  const name = (sum: Sum<ClientExtra>): string => partyOf(sum).name || sum.key;
  const row = (sum: Sum<ClientExtra>): ClientRow => {
    const { key, tally } = sum;
    const { kinds, confidence, why } = resolvers.of(key, servers.has(addressOfId(key)));
    const asked = new Set(sum.extras.flatMap((extra) => [...extra.servers]));
    return {
      id: key,
      ...partyOf(sum),
      ...tally.counts(),
      ...tally.lookupCounts(),
      firstMs: tally.firstMs,
      lastMs: tally.lastMs,
      resolver: { kinds, confidence, why },
      servers: [...asked].map((address) => parties.at(address, tally.lastMs)),
    };
  };
  const found = wanted(sums, query);
  return listRows(
    found,
    query,
    ordersOf<Sum<ClientExtra>>(name, {
      queries: byMost(({ tally }) => tally.queries),
      lookups: byMost(({ tally }) => tally.lookups),
    }),
    row,
    leftOutOf(parts, found, counts.clients.displaced(fromMs)),
  );
}

export function nameRows(parts: ListParts, query: ViewQuery<'names'>): Listed<NameRow> {
  const { counts, fromMs } = parts;
  const sums = [...counts.names.sums(fromMs).values()];
  const clients = ({ extras }: Sum<NameExtra>): number | null => {
    const all = new Set(extras.flatMap((extra) => [...extra.clients]));
    return all.size > CLIENTS_OF_NAME ? null : all.size;
  };
  const row = (sum: Sum<NameExtra>): NameRow => {
    const { key, tally, error, extras } = sum;
    const last = extras.reduce((one, other) => (other.endedMs > one.endedMs ? other : one));
    return {
      id: key,
      name: key,
      ...tally.counts(),
      ...tally.lookupCounts(),
      clients: clients(sum),
      types: [...new Set(extras.flatMap(({ types }) => [...types]))].map(typeName),
      outcome: last.ending,
      lastMs: tally.lastMs,
      error,
    };
  };
  const found = wanted(sums, query);
  return listRows(
    found,
    query,
    ordersOf<Sum<NameExtra>>(({ key }) => key, {
      lookups: byMost(({ tally }) => tally.lookups),
      queries: byMost(({ tally }) => tally.queries),
      clients: byMost((sum) => clients(sum) ?? Infinity),
    }),
    row,
    leftOutOf(parts, found, counts.names.displaced(fromMs)),
  );
}

/** Returns servers, upstreams and the pods behind services. */
export function serverRows(parts: ListParts, query: ViewQuery<'servers'>): Listed<ServerRow> {
  const { counts, parties, fromMs } = parts;
  const sums = [...counts.servers.sums(fromMs).values()];
  const servers = serverAddresses(counts, fromMs);
  const roles = new Map(sums.map((sum) => [sum.key, roleOf(sum, servers)]));
  const odd = new Map(
    (['server', 'upstream', 'behind'] as const).flatMap((role) => [
      ...oddOnes(sums.filter(({ key }) => roles.get(key) === role)),
    ]),
  );
  const partyOf = ({ key, tally }: Sum<ServerExtra>): Party =>
    parties.at(endpointOfServer(key).address, tally.lastMs);
  const row = (sum: Sum<ServerExtra>): ServerRow => {
    const { key, tally, extras } = sum;
    const behind = new Set(extras.flatMap((extra) => [...extra.behind]));
    return {
      id: key,
      port: endpointOfServer(key).port,
      ...partyOf(sum),
      ...tally.counts(),
      role: roles.get(key)!,
      clients: clientsOf(sum),
      firstMs: tally.firstMs,
      lastMs: tally.lastMs,
      behind: [...behind].map((address) => parties.at(address, tally.lastMs)),
      odd: odd.get(key) ?? '',
    };
  };
  const found = wanted(sums, query);
  return listRows(
    found,
    query,
    ordersOf<Sum<ServerExtra>>((sum) => partyOf(sum).name || sum.key, {
      queries: byMost(({ tally }) => tally.queries),
      clients: byMost((sum) => clientsOf(sum) ?? Infinity),
    }),
    row,
    leftOutOf(parts, found, counts.servers.displaced(fromMs)),
  );
}

export function serverAddresses(counts: WindowCounts, fromMs: number): ReadonlySet<string> {
  const answering = [...counts.servers.sums(fromMs).values()].filter(
    ({ tally }) => tally.queries > tally.lost,
  );
  return new Set(answering.map(({ key }) => endpointOfServer(key).address));
}

function clientsOf({ extras }: Sum<ServerExtra>): number | null {
  if (extras.some(({ hasMore }) => hasMore)) return null;
  return new Set(extras.flatMap(({ clients }) => [...clients])).size;
}

/** Only servers query upstreams. */
function roleOf({ extras }: Sum<ServerExtra>, servers: ReadonlySet<string>): ServerRow['role'] {
  if (extras.some(({ isBehind }) => isBehind)) return 'behind';
  const clients = extras.flatMap((extra) => [...extra.clients]);
  return clients.length > 0 && clients.every((address) => servers.has(address))
    ? 'upstream'
    : 'server';
}

/** Adds the orders shared by all lists to a list's own. */
function ordersOf<T extends Sum<unknown>>(
  name: (sum: T) => string,
  own: Readonly<Record<string, RowOrder<T>>>,
): Readonly<Record<string, RowOrder<T>>> {
  const orders: Record<string, RowOrder<T>> = {
    ...own,
    lost: byMost(({ tally }) => tally.lost),
    failed: byMost(({ tally }) => tally.failed),
    wasted: byMost(({ tally }) => tally.wasted),
    latency: byMost(({ tally }) => tally.latency.quantile(0.99) ?? -1),
    seen: byMost(({ tally }) => tally.lastMs),
    name: byText(name),
  };
  const settled = byText<T>(({ key }) => key);
  return Object.fromEntries(
    Object.entries(orders).map(([word, order]) => [word, orElse(order, settled)]),
  );
}

function wanted<T extends Sum<unknown>>(
  sums: readonly T[],
  { id }: Pick<ViewQuery, 'id'>,
): readonly T[] {
  return id === undefined ? sums : sums.filter(({ key }) => key === id);
}

function leftOutOf(
  { leftOut }: ListParts,
  sums: readonly Sum<unknown>[],
  displaced: number,
): LeftOutOfList {
  return {
    ...leftOut,
    leftOut: displaced,
    error: sums.reduce((most, { error }) => Math.max(most, error), 0),
  };
}
