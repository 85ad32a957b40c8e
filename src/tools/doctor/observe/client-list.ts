/**
 * A capture's clients, with their queries and the lookups that show their resolvers. Memory is
 * bounded.
 */
import {
  forwarder,
  resolverOf,
  type NamedResolver,
} from '../../capture/fingerprint/named-resolver.ts';
import { Recognition } from '../../capture/fingerprint/recognition.ts';
import { BoundedMap } from './bounded-map.ts';
import { isReverseLookup } from './reverse-lookup.ts';
import { isServiceConfig } from './service-config.ts';
import { isCut } from '../../capture/pair/message-head.ts';
import { isLost, type SeenExchange, type SeenLookup } from '../../capture/pair/seen-exchange.ts';

export const CLIENTS_MAX = 10_000;

export interface CountedClient {
  readonly address: string;
  queries: number;
  lost: number;
  lookups: number;
  readonly recognition: Recognition;
}

export interface ListedClient extends Omit<CountedClient, 'recognition'> {
  readonly resolver: NamedResolver;
}

/** Clients, busiest first. */
export interface ListedClients {
  readonly listed: readonly ListedClient[];
  /** Null if all are listed. */
  readonly others: OtherClients | null;
}

export interface OtherClients {
  readonly clients: number;
  readonly queries: number;
  /** True if there are more clients than that, which are not counted. */
  readonly more: boolean;
}

export class ClientList {
  readonly #clients = new BoundedMap<string, CountedClient>(CLIENTS_MAX);
  #lastMs = -Infinity;
  /** Counted queries from clients beyond the limit. */
  #leftOut = 0;

  /** Adds a finished query. @param counts whether it counts; its client is examined in any case */
  exchange(exchange: SeenExchange, counts: boolean): void {
    const client = this.#clients.at(exchange.client.address, newClient);
    // The same queries count as in the totals.
    if (!counts || exchange.ending === 'open') return;
    if (exchange.sentMs > this.#lastMs) this.#lastMs = exchange.sentMs;
    if (client === null) {
      this.#leftOut++;
      return;
    }
    client.queries++;
    if (isLost(exchange)) client.lost++;
  }

  /**
   * Takes a lookup after its exchanges. It shows the resolver in any case. @param counts whether it
   * counts, unless it is later than all queries that count
   */
  lookup(lookup: SeenLookup, counts: boolean): void {
    const client = this.#clients.get(lookup.client);
    if (client === undefined) return;
    if (counts && lookup.startMs <= this.#lastMs) client.lookups++;
    recognise(client.recognition, lookup);
  }

  listed(most: number): ListedClients {
    return listClients(this.#clients.list, most, this.#leftOut);
  }
}

/**
 * Uses a lookup for the client's recognition. A cut question may be for another type than an
 * address, except for names with an unmistakable beginning.
 */
export function recognise(recognition: Recognition, lookup: SeenLookup): void {
  const { name, type } = lookup.exchanges[0]!;
  if (isCut(name) && (isReverseLookup(name, type) || isServiceConfig(name, type))) return;
  recognition.add(lookup);
}

/**
 * @param most clients that are listed
 * @param leftOut queries of clients that are not among these
 * @param isServer whether the client answers queries itself, so that it asks for others
 */
export function listClients(
  clients: readonly CountedClient[],
  most: number,
  leftOut: number,
  isServer: (address: string) => boolean = () => false,
): ListedClients {
  const asking = clients
    .filter(({ queries }) => queries > 0)
    .toSorted((one, other) => other.queries - one.queries);
  const rest = asking.slice(most);
  return {
    listed: asking.slice(0, most).map(({ recognition, ...client }) => ({
      ...client,
      resolver: isServer(client.address) ? forwarder : resolverOf(recognition, client.lookups),
    })),
    others:
      rest.length + leftOut === 0
        ? null
        : {
            clients: rest.length,
            queries: rest.reduce((sum, { queries }) => sum + queries, leftOut),
            more: leftOut > 0,
          },
  };
}

const newClient = (address: string): CountedClient => ({
  address,
  queries: 0,
  lost: 0,
  lookups: 0,
  recognition: new Recognition(),
});
