/** Where plugins of one server block meet without knowing each other. */
import type { Query } from '../../wire/query.ts';
import type { Protocol } from '../../wire/transports.ts';
import type { WireName } from '../../wire/name.ts';
import { definePort, type PluginPort } from './plugin.ts';
import type { Dependency } from './reply-cache.ts';

/** Writes what a plugin knows about a query before it is answered: label (`kubernetes/client-namespace`) → value. */
export type MetadataProvider = (query: Query, notes: Map<string, string>) => void;

/** Offered by plugins that know something; asked by `metadata`, in the order of the chain backwards. */
export const metadataProviders: PluginPort<MetadataProvider> =
  definePort<MetadataProvider>('metadata providers');

/** Offered by `metadata` to `view`, which needs the notes before the chain begins: collects them into `query.notes`. */
export const metadataCollector: PluginPort<(query: Query) => void> =
  definePort<(query: Query) => void>('metadata collector');

/**
 * Where the search path of a cluster's clients can be read off: offered by `kubernetes`, asked by `autopath`. Both methods
 * give the offset in `query.folded` at which the client's first search domain (`NS.svc.ZONE`) begins, with at least one
 * label before it; -1 if the query is to be answered as it stands.
 */
export interface ClientSearchPaths {
  readonly plugin: string;
  /** Whether clients are known by their address at all. */
  readonly knowsClients: boolean;
  /** The domain of the pod that asks, by its address. */
  byClient(query: Query): number;
  /** The domain that the name itself carries, unless the name may stand for something of the zone. */
  byName(query: Query): number;
}

/** Offered by `kubernetes`, asked by `autopath`. */
export const searchDomains: PluginPort<ClientSearchPaths> =
  definePort<ClientSearchPaths>('search domains');

/** Search domains that are the same for every client, the first one first. */
export interface SearchList {
  readonly plugin: string;
  readonly domains: readonly string[];
}

/** Offered by `erratic`, asked by `autopath`. */
export const searchLists: PluginPort<SearchList> = definePort<SearchList>('search lists');

/** Whose pods ask: offered by `kubernetes`, asked by plugins that treat clients by their namespace. */
export interface ClientNamespaces {
  /** Whether pods are watched: otherwise no client is known. */
  readonly known: boolean;
  /** The namespace of the pod that asks, by its address; empty if that is no pod's alone. */
  of(query: Query): string;
  /** The pod with this address (4 or 16 bytes), as far as it is known: empty texts. */
  pod(address: Uint8Array): { readonly namespace: string; readonly name: string };
}

/** Where namespaces of clients are found. */
export const clientNamespaces: PluginPort<ClientNamespaces> =
  definePort<ClientNamespaces>('client namespaces');

/**
 * Which queries are the server's own and look for their way round: such a query must come to every plugin as often as it comes
 * to the server. Offered by `loop`, asked by whoever would have it wait for another one's reply.
 */
export const roundTrips: PluginPort<(query: Query) => boolean> =
  definePort<(query: Query) => boolean>('round trips');

/** A query that was sent to an upstream, and what became of it. Valid during the call that tells of it. */
export interface EndedExchange {
  readonly query: Query;
  /** Address of the upstream. */
  readonly host: string;
  readonly port: number;
  readonly proto: Protocol;
  /** When the query was sent, on the clock (milliseconds). */
  readonly sentAt: number;
  /** Holds the reply in `[start, end)`; null: none came. */
  readonly reply: Uint8Array | null;
  readonly start: number;
  readonly end: number;
}

/** Told of every exchange with an upstream when it is over. Offered by `dnstap`, asked by who forwards. */
export interface ExchangeTap {
  exchanged(exchange: EndedExchange): void;
}

/** Where taps of exchanges with upstreams are found. */
export const exchangeTaps: PluginPort<ExchangeTap> = definePort<ExchangeTap>('exchange taps');

/** One way to reach a service from outside. Names are relative to whatever zone asks: they end in the root. */
export interface OutsideEntry {
  /** 4 or 16 bytes, or the name of a host elsewhere. */
  readonly address: Uint8Array;
  readonly named: boolean;
  /** -1: the service declares none. */
  readonly port: number;
  /** What has this address: the service, or one of its endpoints. */
  readonly below: WireName;
}

/** A service that is reached from outside, for transfers: its name, and those of its ports. */
export interface OutsideService {
  readonly below: WireName;
  readonly ports: readonly WireName[];
  /** Its endpoints have names of their own. */
  readonly headless: boolean;
}

/**
 * The services of a cluster as they are reached from outside: addresses that they have themselves (`externalIPs`) or from load balancers,
 * and with `headless` endpoints of headless services that have none. Offered by `kubernetes`, asked by `k8s_external`.
 */
export interface OutsideServices extends Dependency {
  /** Unix time of the last change. */
  readonly serial: number;
  /** Everything has been listed. */
  readonly synced: boolean;
  /**
   * What the name `folded[0, end)` stands for: `NAMESPACE`, `SERVICE.NAMESPACE`, an endpoint or a port of it.
   * @returns null: there is no such name; empty: it exists, and has nothing
   */
  find(folded: Uint8Array, end: number, headless: boolean): readonly OutsideEntry[] | null;
  /** The services with the address that the reverse name `folded[0, end)` stands for, as relative names; null: it stands for none. */
  pointers(folded: Uint8Array, end: number): readonly WireName[] | null;
  /** The addresses by which this server is reached from outside. */
  nameServers(headless: boolean): readonly Uint8Array[];
  all(headless: boolean): Iterable<OutsideService>;
}

/** Where `k8s_external` finds the services of `kubernetes`. */
export const outsideServices: PluginPort<OutsideServices> =
  definePort<OutsideServices>('outside services');
