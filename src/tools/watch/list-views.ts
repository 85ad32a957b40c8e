/** The lists of clients, names and servers. */
import { typeName } from '../../server/wire/iana.ts';
import type { ClientResolvers } from './client-resolvers.ts';
import type { KeyCounts, KeySum as Sum } from './key-counts.ts';
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
  const orders = { queries: byQueries, lookups: byLookups };
  return listOf(parts, { sums, of: counts.clients }, query, { name, orders, row });
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
  const byClients = byMost<Sum<NameExtra>>((sum) => clients(sum) ?? Infinity);
  const orders = { lookups: byLookups, queries: byQueries, clients: byClients };
  const name = ({ key }: Sum<NameExtra>): string => key;
  return listOf(parts, { sums, of: counts.names }, query, { name, orders, row });
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
  const name = (sum: Sum<ServerExtra>): string => partyOf(sum).name || sum.key;
  const byClients = byMost<Sum<ServerExtra>>((sum) => clientsOf(sum) ?? Infinity);
  const orders = { queries: byQueries, clients: byClients };
  return listOf(parts, { sums, of: counts.servers }, query, { name, orders, row });
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

const byQueries: RowOrder<Sum<unknown>> = byMost(({ tally }) => tally.queries);
const byLookups: RowOrder<Sum<unknown>> = byMost(({ tally }) => tally.lookups);

/** @param how the list's own orders, in addition to those of all lists */
function listOf<Extra, Row>(
  { leftOut, fromMs }: ListParts,
  { sums, of }: { readonly sums: readonly Sum<Extra>[]; readonly of: KeyCounts<Extra> },
  query: Parameters<typeof listRows>[1] & Pick<ViewQuery, 'id'>,
  how: {
    readonly name: (sum: Sum<Extra>) => string;
    readonly orders: Readonly<Record<string, RowOrder<Sum<Extra>>>>;
    readonly row: (sum: Sum<Extra>) => Row;
  },
): Listed<Row> {
  const orders: Readonly<Record<string, RowOrder<Sum<Extra>>>> = {
    ...how.orders,
    lost: byMost(({ tally }) => tally.lost),
    errors: byMost(({ tally }) => tally.failed),
    wasted: byMost(({ tally }) => tally.wasted),
    latency: byMost(({ tally }) => tally.latency.quantile(0.99) ?? -1),
    seen: byMost(({ tally }) => tally.lastMs),
    name: byText(how.name),
  };
  const settled = byText<Sum<Extra>>(({ key }) => key);
  const all = Object.entries(orders).map(
    ([word, order]) => [word, orElse(order, settled)] as const,
  );
  const found = query.id === undefined ? sums : sums.filter(({ key }) => key === query.id);
  return listRows(found, query, Object.fromEntries(all), how.row, {
    ...leftOut,
    leftOut: of.displaced(fromMs),
    error: found.reduce((most, { error }) => Math.max(most, error), 0),
  });
}
