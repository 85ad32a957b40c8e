/** Totals for a window by second and by minute, and by client, name and server. */
import type { FilteredExchange } from '../capture/filter.ts';
import { addressOf } from '../capture/pair/seen-exchange.ts';
import { KeyCounts } from './key-counts.ts';
import type { LiveLimits } from './live-limits.ts';
import type { JudgedQuery } from './lookup-ending.ts';
import type { Parties } from './parties.ts';
import { QueryTally } from './query-tally.ts';
import { serverId } from './server-id.ts';
import { TimeSlots } from './time-slots.ts';
import type { LookupEnding } from './view.ts';

/** Totals for a day, one per minute. */
const MINUTE_MS = 60_000;
const MINUTES = 24 * 60;
const SECOND_MS = 1000;
/** The maximum number of peers that a step counts separately, such as a name's clients or a client's servers. */
const PEERS_MAX = 64;
const CLIENTS_OF_SERVER_MAX = 2048;
/** The size of an address in bytes. */
const ADDRESS_BYTES = 48;

export interface ClientExtra {
  readonly servers: Set<string>;
}

export interface NameExtra {
  readonly clients: Set<string>;
  readonly types: Set<number>;
  ending: LookupEnding;
  endedMs: number;
}

export interface ServerExtra {
  readonly clients: Set<string>;
  /** True if there are more clients than were counted separately. */
  hasMore: boolean;
  /** The servers that its queries were translated to. */
  readonly behind: Set<string>;
  /** True if queries reach it through a service address. */
  isBehind: boolean;
}

/** Question types and protocols in a minute. */
interface Kinds {
  readonly types: Map<number, number>;
  readonly protocols: Map<string, number>;
}

/** The counted parts of a query, which both captures and stored lookups have. */
export type WindowQuery = Omit<FilteredExchange, 'asker'>;

export interface WindowLookup {
  readonly client: string;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
}

export class WindowCounts {
  readonly seconds: TimeSlots<QueryTally>;
  readonly minutes: TimeSlots<QueryTally> = new TimeSlots(
    MINUTE_MS,
    MINUTES,
    () => new QueryTally(),
  );
  readonly kinds: TimeSlots<Kinds>;
  readonly clients: KeyCounts<ClientExtra>;
  readonly names: KeyCounts<NameExtra>;
  readonly servers: KeyCounts<ServerExtra>;
  readonly #parties: Parties;

  constructor({ windowMs, clients, names, servers }: LiveLimits, parties: Parties) {
    this.#parties = parties;
    this.seconds = new TimeSlots(
      SECOND_MS,
      Math.ceil(windowMs / SECOND_MS) + 1,
      () => new QueryTally(),
    );
    this.kinds = new TimeSlots(MINUTE_MS, Math.ceil(windowMs / MINUTE_MS) + 1, () => ({
      types: new Map(),
      protocols: new Map(),
    }));
    this.clients = new KeyCounts(windowMs, clients, () => ({ servers: new Set() }), ADDRESS_BYTES);
    this.names = new KeyCounts(windowMs, names, () => ({
      clients: new Set(),
      types: new Set(),
      ending: 'waiting',
      endedMs: -Infinity,
    }));
    this.servers = new KeyCounts(
      windowMs,
      servers,
      () => ({ clients: new Set(), hasMore: false, behind: new Set(), isBehind: false }),
      ADDRESS_BYTES,
    );
  }

  /** Counts a finished query. */
  exchange(exchange: WindowQuery): void {
    const { client, server, hops, sentMs, type, protocol } = exchange;
    this.seconds.at(sentMs)?.add(exchange);
    this.minutes.at(sentMs)?.add(exchange);
    const kinds = this.kinds.at(sentMs);
    if (kinds !== null) {
      kinds.types.set(type, (kinds.types.get(type) ?? 0) + 1);
      kinds.protocols.set(protocol, (kinds.protocols.get(protocol) ?? 0) + 1);
    }
    const id = this.#parties.idAt(client.address, sentMs);
    const asking = this.clients.count(id, sentMs);
    const address = addressOf(server);
    if (asking !== null) {
      asking.tally.add(exchange);
      addTo(asking.extra.servers, address, PEERS_MAX);
    }
    // A log line does not name a server.
    if (address === '') return;
    const behind = hops.length === 0 ? '' : addressOf(hops.at(-1)!.server);
    const isTaken = behind !== '' && behind !== address;
    this.#server(exchange, address, isTaken ? behind : '', false);
    if (isTaken) this.#server(exchange, behind, '', true);
  }

  /** Counts the reply to a query that was counted as lost. */
  found(exchange: WindowQuery): void {
    const { client, server, hops, sentMs } = exchange;
    this.seconds.at(sentMs)?.found(exchange);
    this.minutes.at(sentMs)?.found(exchange);
    this.clients.find(this.#parties.idAt(client.address, sentMs), sentMs)?.tally.found(exchange);
    const address = addressOf(server);
    if (address === '') return;
    const behind = hops.length === 0 ? address : addressOf(hops.at(-1)!.server);
    for (const each of new Set([address, behind]))
      this.servers.find(serverId(each, server.port), sentMs)?.tally.found(exchange);
  }

  /** @param queries those of its queries that count, which were passed in earlier */
  lookup(
    { client, name, startMs, endMs }: WindowLookup,
    queries: readonly (WindowQuery & JudgedQuery)[],
    ending: LookupEnding,
    wasted: readonly WindowQuery[],
  ): void {
    const isFound = ending === 'answered';
    const tookMs = endMs - startMs;
    const id = this.#parties.idAt(client, startMs);
    this.seconds.at(startMs)?.lookup(startMs, tookMs, isFound);
    this.minutes.at(startMs)?.lookup(startMs, tookMs, isFound);
    this.clients.find(id, startMs)?.tally.lookup(startMs, tookMs, isFound);
    for (const { sentMs, server } of wasted) {
      const tallies = [
        this.seconds.at(sentMs),
        this.minutes.at(sentMs),
        this.clients.find(id, sentMs)?.tally,
        this.servers.find(serverId(addressOf(server), server.port), sentMs)?.tally,
      ];
      for (const tally of tallies) if (tally !== null && tally !== undefined) tally.wasted++;
    }
    const named = this.names.count(name, startMs);
    if (named === null) return;
    const { tally, extra } = named;
    tally.lookup(startMs, tookMs, isFound);
    tally.wasted += wasted.length;
    for (const each of queries) {
      if (each.ending !== 'open') tally.add(each);
      addTo(extra.types, each.type, PEERS_MAX);
    }
    addTo(extra.clients, id, PEERS_MAX + 1);
    if (endMs < extra.endedMs) return;
    extra.ending = ending;
    extra.endedMs = endMs;
  }

  advance(nowMs: number): void {
    for (const each of [this.seconds, this.minutes, this.kinds]) each.advance(nowMs);
    for (const each of [this.clients, this.names, this.servers]) each.advance(nowMs);
  }

  /** The estimated size in bytes with all slots in use. */
  static limitBytes({ windowMs, clients, names, servers }: LiveLimits): number {
    const steps = MINUTES + windowMs / SECOND_MS;
    const keys =
      KeyCounts.limitBytes(clients + servers, ADDRESS_BYTES) + KeyCounts.limitBytes(names);
    return keys + steps * QueryTally.limitBytes;
  }

  /** The estimated total size in bytes. */
  get bytes(): number {
    let bytes = 0;
    for (const each of [this.clients, this.names, this.servers]) bytes += each.bytes;
    for (const slots of [this.seconds, this.minutes])
      for (const tally of slots.between(-Infinity)) bytes += tally.bytes;
    return bytes;
  }

  #server(exchange: WindowQuery, address: string, behind: string, isBehind: boolean): void {
    const { client, server, sentMs } = exchange;
    const entry = this.servers.count(serverId(address, server.port), sentMs);
    if (entry === null) return;
    const { tally, extra } = entry;
    tally.add(exchange);
    if (!addTo(extra.clients, client.address, CLIENTS_OF_SERVER_MAX)) extra.hasMore = true;
    if (behind !== '') addTo(extra.behind, behind, PEERS_MAX);
    extra.isBehind ||= isBehind;
  }
}

/** @returns whether it is now in the set */
function addTo<T>(set: Set<T>, value: T, most: number): boolean {
  if (set.has(value)) return true;
  if (set.size >= most) return false;
  set.add(value);
  return true;
}
