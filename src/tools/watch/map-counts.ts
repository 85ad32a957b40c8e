/** Counts lookups by client and server, and groups them into the map's nodes and edges. */
import type { GivenFilter } from '../capture/filter.ts';
import { printFilterLine } from '../capture/filter-line.ts';
import { RCODE } from '../../server/wire/iana.ts';
import { LatencyHistogram } from './latency-histogram.ts';
import { byMost, orElse } from './list-rows.ts';
import type { MapEdge, MapNode, MapRole, MapView } from './map-shape.ts';
import { isLostQuery, type StoredQuery } from './packed-lookup.ts';
import type { Parties } from './parties.ts';

/** The number of client groups that are shown individually, the worst first. All other clients form one group. */
const GROUPS_MAX = 12;
/** The number of servers on the map. The server table shows all of them. */
const SERVERS_MAX = 24;
/** The node for all other clients. */
const MORE = 'more';

class EdgeTally {
  lookups = 0;
  queries = 0;
  lost = 0;
  failed = 0;
  readonly latency = new LatencyHistogram();
  #lastId = -1;

  add(id: number, query: StoredQuery): void {
    if (id !== this.#lastId) this.lookups++;
    this.#lastId = id;
    this.queries++;
    const { rcode, sentMs, repliedMs } = query;
    if (isLostQuery(query)) this.lost++;
    if (rcode > 0 && rcode !== RCODE.NXDOMAIN) this.failed++;
    if (repliedMs !== null) this.latency.add(repliedMs - sentMs);
  }

  /** Adds another client's counts. They have no lookup in common. */
  merge(other: EdgeTally): void {
    this.lookups += other.lookups;
    this.queries += other.queries;
    this.lost += other.lost;
    this.failed += other.failed;
    this.latency.merge(other.latency);
  }
}

interface ClientGroup {
  readonly id: string;
  readonly filter: GivenFilter;
  readonly name: string;
  /** Empty if the group is a workload. */
  readonly address: string;
  readonly clients: Set<string>;
  lookups: number;
}

interface DrawnEdge {
  readonly from: string;
  readonly to: string;
  readonly filter: readonly GivenFilter[];
  readonly tally: EdgeTally;
}

export class MapCounts {
  lookups = 0;
  readonly #parties: Parties;
  /** Lookups by client. */
  readonly #clients = new Map<string, number>();
  /** By client, and then by the server that it queried. */
  readonly #asked = new Map<string, Map<string, EdgeTally>>();
  /** By the server that was addressed, and then by the one that address translation chose. */
  readonly #taken = new Map<string, Map<string, EdgeTally>>();
  /** Lookups by server. */
  readonly #servers = new Map<string, { lookups: number; lastId: number; replies: boolean }>();

  constructor(parties: Parties) {
    this.#parties = parties;
  }

  /** @param queries the selected queries in one lookup, at least one */
  add(id: number, queries: readonly StoredQuery[]): void {
    const client = queries[0]!.client.address;
    this.lookups++;
    this.#clients.set(client, (this.#clients.get(client) ?? 0) + 1);
    for (const query of queries) {
      const server = query.server.address;
      tallyAt(this.#asked, client, server).add(id, query);
      const isAnswered = query.rcode >= 0;
      this.#see(server, id, isAnswered);
      for (const { server: hop } of query.hops) {
        if (hop.address === server) continue;
        tallyAt(this.#taken, server, hop.address).add(id, query);
        this.#see(hop.address, id, isAnswered);
      }
    }
  }

  #see(server: string, id: number, isAnswered: boolean): void {
    let seen = this.#servers.get(server);
    if (seen === undefined)
      this.#servers.set(server, (seen = { lookups: 0, lastId: -1, replies: false }));
    if (seen.lastId !== id) seen.lookups++;
    seen.lastId = id;
    seen.replies ||= isAnswered;
  }

  /** @param filters the page's filters, which edges preserve */
  drawn(
    filters: readonly GivenFilter[],
    seconds: number,
  ): Pick<MapView, 'nodes' | 'edges' | 'serversLeftOut'> {
    const servers = [...this.#servers]
      .toSorted(([one, a], [other, b]) => b.lookups - a.lookups || (one < other ? -1 : 1))
      .slice(0, SERVERS_MAX);
    const shown = new Set(servers.map(([address]) => address));
    const groups = this.#groups((address) => shown.has(address) && this.#answers(address));
    const edges = this.#edges(groups, shown);
    const asking = new Set(edges.map(({ from }) => from));
    const clients = groups.filter(({ id }) => !shown.has(id));
    const others = clients.filter(({ id }) => !asking.has(id));
    const nodes: MapNode[] = [
      ...clients
        .filter(({ id }) => asking.has(id))
        .map(({ id, name, address, clients: { size }, lookups }): MapNode => ({
          ...{ id, name, address, lookups },
          ...{ role: 'clients', clients: size, more: 0 },
        })),
      ...(asking.has(MORE) ? [moreNode(others)] : []),
      ...servers.map(([address, { lookups }]): MapNode => ({
        ...{ id: address, role: this.#roleOf(address, groups), address, lookups },
        ...{ name: this.#parties.at(address, Infinity).name, clients: 0, more: 0 },
      })),
    ];
    return {
      nodes,
      edges: edges.map((edge) => printEdge(edge, filters, seconds)),
      serversLeftOut: this.#servers.size - servers.length,
    };
  }

  /** True if it replies to anyone but itself. */
  #answers(address: string): boolean {
    if (this.#servers.get(address)?.replies !== true) return false;
    if ([...this.#taken.values()].some((taken) => taken.has(address))) return true;
    return [...this.#asked].some(([client, asked]) => client !== address && asked.has(address));
  }

  /**
   * Groups clients by workload, those with the most lookups first. A server that queries others forms a separate group.
   */
  #groups(isServer: (address: string) => boolean): readonly ClientGroup[] {
    const groups = new Map<string, ClientGroup>();
    const servers: ClientGroup[] = [];
    for (const [address, lookups] of this.#clients) {
      if (isServer(address)) {
        servers.push(addressGroup(address, lookups));
        continue;
      }
      // As in filters, the current owner counts.
      const owner = this.#parties.owners.get(address);
      const hasWorkload = owner !== undefined && owner.workload !== '';
      const label = hasWorkload ? `${owner.namespace}/${owner.workload}` : address;
      const id = `clients ${label}`;
      const group = groups.get(id);
      if (group !== undefined) {
        group.clients.add(address);
        group.lookups += lookups;
      } else if (hasWorkload) {
        const filter = { word: 'workload', value: label, negated: false } as const;
        const own = { id, filter, name: label, address: '' };
        groups.set(id, { ...own, clients: new Set([address]), lookups });
      } else {
        const { name } = this.#parties.at(address, Infinity);
        groups.set(id, { ...addressGroup(address, lookups), id, name });
      }
    }
    const sorted = [...groups.values()].toSorted(
      (one, other) => other.lookups - one.lookups || (one.id < other.id ? -1 : 1),
    );
    return [...sorted, ...servers];
  }

  #edges(groups: readonly ClientGroup[], shown: ReadonlySet<string>): readonly DrawnEdge[] {
    const isServer = ({ id }: ClientGroup): boolean => shown.has(id);
    const clients = groups.filter((group) => !isServer(group));
    // Show one more group rather than "1 more".
    const most = clients.length === GROUPS_MAX + 1 ? GROUPS_MAX + 1 : GROUPS_MAX;
    const own = new Set(this.#worstFirst(clients).slice(0, most));
    const others = clients.filter((group) => !own.has(group));
    const named = groups.filter((group) => own.has(group) || isServer(group));
    const edges: DrawnEdge[] = [];
    const draw = (
      from: string,
      of: readonly ClientGroup[],
      filter: readonly GivenFilter[],
    ): void => {
      for (const server of shown) {
        const tally = new EdgeTally();
        for (const { clients: addresses } of of)
          for (const address of addresses) {
            const each = this.#asked.get(address)?.get(server);
            if (each !== undefined) tally.merge(each);
          }
        const at = { word: 'server-ip', value: server, negated: false } as const;
        if (tally.lookups > 0) edges.push({ from, to: server, filter: [...filter, at], tally });
      }
    };
    for (const group of named) draw(group.id, [group], [group.filter]);
    if (others.length > 0)
      draw(
        MORE,
        others,
        named.map(({ filter }) => ({ ...filter, negated: true })),
      );
    for (const [server, taken] of this.#taken)
      for (const [hop, tally] of taken)
        if (shown.has(server) && shown.has(hop))
          edges.push({
            from: server,
            to: hop,
            filter: [
              { word: 'server-ip', value: server, negated: false },
              { word: 'to-ip', value: hop, negated: false },
            ],
            tally,
          });
    return edges;
  }

  /** Puts groups that lost queries first, then those with error replies. Otherwise keeps the order. */
  #worstFirst(groups: readonly ClientGroup[]): readonly ClientGroup[] {
    const sumOf = (key: 'lost' | 'failed'): ReadonlyMap<ClientGroup, number> =>
      new Map(
        groups.map((group) => {
          let sum = 0;
          for (const address of group.clients)
            for (const tally of this.#asked.get(address)?.values() ?? []) sum += tally[key];
          return [group, sum];
        }),
      );
    const [lost, failed] = [sumOf('lost'), sumOf('failed')];
    const byLost = byMost<ClientGroup>((group) => lost.get(group)!);
    const byFailed = byMost<ClientGroup>((group) => failed.get(group)!);
    return groups.toSorted(orElse(byLost, byFailed));
  }

  #roleOf(address: string, groups: readonly ClientGroup[]): MapRole {
    const askers = groups.filter(({ clients }) =>
      [...clients].some((client) => this.#asked.get(client)?.has(address) === true),
    );
    if (askers.length === 0) return 'behind';
    return askers.every(({ id }) => this.#servers.has(id)) ? 'upstream' : 'server';
  }
}

function tallyAt(all: Map<string, Map<string, EdgeTally>>, from: string, to: string): EdgeTally {
  let own = all.get(from);
  if (own === undefined) all.set(from, (own = new Map()));
  let tally = own.get(to);
  if (tally === undefined) own.set(to, (tally = new EdgeTally()));
  return tally;
}

function addressGroup(address: string, lookups: number): ClientGroup {
  const filter = { word: 'from-ip', value: address, negated: false } as const;
  return { id: address, filter, name: '', address, clients: new Set([address]), lookups };
}

function moreNode(groups: readonly ClientGroup[]): MapNode {
  const clients = groups.reduce((sum, group) => sum + group.clients.size, 0);
  const lookups = groups.reduce((sum, group) => sum + group.lookups, 0);
  return {
    ...{ id: MORE, role: 'clients', name: '', address: '' },
    ...{ clients, more: groups.length, lookups },
  };
}

function printEdge(
  { from, to, filter, tally }: DrawnEdge,
  filters: readonly GivenFilter[],
  seconds: number,
): MapEdge {
  const { lookups, queries, lost, failed, latency } = tally;
  // Values for the same word are alternatives, and everything that this edge counts already matches the page's filters.
  const own = new Set(filter.filter(({ negated }) => !negated).map(({ word }) => word));
  const kept = filters.filter(({ word, negated }) => negated || !own.has(word));
  return {
    id: `${from} ${to}`,
    ...{ from, to, lookups, queries, lost, failed },
    rate: queries / seconds,
    latency: { p50: latency.quantile(0.5), p99: latency.quantile(0.99) },
    filter: printFilterLine([...kept, ...filter]),
  };
}
