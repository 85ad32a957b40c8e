/** The ports through which plugins in one server block use each other. */
import type { Query } from '../../transport/query.ts';
import type { Protocol } from '../../wire/transports.ts';
import type { WireName } from '../../wire/name.ts';
import { definePort, type PluginPort } from './plugin.ts';
import type { Dependency } from './reply-cache.ts';

/**
 * Adds what a plugin knows about a query before it is answered, as a mapping from labels
 * (`kubernetes/client-namespace`) to values.
 */
export type MetadataProvider = (query: Query, notes: Map<string, string>) => void;

/** Offered by plugins that provide metadata, and used by `metadata`, from the last plugin in the chain to the first. */
export const metadataProviders: PluginPort<MetadataProvider> =
  definePort<MetadataProvider>('metadata providers');

/**
 * Offered by `metadata` to `view`, which needs the metadata before the chain begins. Collects it into `query.notes`.
 */
export const metadataCollector: PluginPort<(query: Query) => void> =
  definePort<(query: Query) => void>('metadata collector');

/**
 * Finds the search path used by a cluster's clients. Offered by `kubernetes` and used by `autopath`. Both methods
 * return the offset in `query.folded` at which the client's first search domain (`NS.svc.ZONE`) begins. At least one
 * label precedes it. -1 means that the query must be answered unchanged.
 */
export interface ClientSearchPaths {
  readonly plugin: string;
  /** True if clients can be identified by their address. */
  readonly knowsClients: boolean;
  /** Uses the namespace of the pod that has the client's address. */
  byClient(query: Query): number;
  /** Uses the domain in the name itself, unless the name may exist in the zone. */
  byName(query: Query): number;
}

/** Offered by `kubernetes`, used by `autopath`. */
export const searchDomains: PluginPort<ClientSearchPaths> =
  definePort<ClientSearchPaths>('search domains');

/** Search domains that are the same for every client, in order. */
export interface SearchList {
  readonly plugin: string;
  readonly domains: readonly string[];
}

/** Offered by `erratic`, used by `autopath`. */
export const searchLists: PluginPort<SearchList> = definePort<SearchList>('search lists');

/**
 * The namespaces of clients. Offered by `kubernetes` and used by plugins that treat clients differently by namespace.
 */
export interface ClientNamespaces {
  /** True if pods are watched. Otherwise, no client is known. */
  readonly known: boolean;
  /**
   * Returns the namespace of the pod that has the client's address. Empty if the address does not belong to exactly one
   * pod.
   */
  of(query: Query): string;
  /** Returns the pod that has this address (4 or 16 bytes), or empty strings if it is not known. */
  pod(address: Uint8Array): { readonly namespace: string; readonly name: string };
}

/** Offered by `kubernetes`: see `ClientNamespaces`. */
export const clientNamespaces: PluginPort<ClientNamespaces> =
  definePort<ClientNamespaces>('client namespaces');

/**
 * Recognizes the server's own loop detection queries. Every plugin must see each of them, so none may be joined with
 * another query in progress. Offered by `loop` and used by plugins that join queries.
 */
export const roundTrips: PluginPort<(query: Query) => boolean> =
  definePort<(query: Query) => boolean>('round trips');

/**
 * Recognizes queries whose upstream answers depend on more than the question, DO and CD, so that no other client may
 * get them. Offered by `rewrite` for EDNS options that differ by client, and used by plugins that store replies or join
 * queries.
 */
export const personalAnswers: PluginPort<(query: Query) => boolean> =
  definePort<(query: Query) => boolean>('personal answers');

/** A finished exchange with an upstream, valid only during the call it is passed to. */
export interface EndedExchange {
  readonly query: Query;
  readonly host: string;
  readonly port: number;
  readonly proto: Protocol;
  /** Time of sending, in milliseconds of the clock. */
  readonly sentAt: number;
  /** Contains the reply in `[start, end)`, or is null if there was none. */
  readonly reply: Uint8Array | null;
  readonly start: number;
  readonly end: number;
}

/** Called for every finished exchange with an upstream. Offered by `dnstap` and used by forwarding plugins. */
export interface ExchangeTap {
  exchanged(exchange: EndedExchange): void;
}

/** Offered by `dnstap`: see `ExchangeTap`. */
export const exchangeTaps: PluginPort<ExchangeTap> = definePort<ExchangeTap>('exchange taps');

/**
 * One way to reach a service from outside the cluster. Names in it are relative to the queried zone, and end in the
 * root.
 */
export interface OutsideEntry {
  /** 4 or 16 bytes, or the name of an external host. */
  readonly address: Uint8Array;
  readonly named: boolean;
  /** -1 if the service declares no port. */
  readonly port: number;
  /** The name that has this address, which is that of the service or of one of its endpoints. */
  readonly below: WireName;
}

/** The name of an externally reachable service, and the result of a query for it. */
export interface OutsideName {
  readonly below: WireName;
  /** Each part is created on request, and takes no longer than fits between two queries. */
  entries(): Iterable<readonly OutsideEntry[]>;
}

/** An externally reachable service, for transfers. It does not change when the service does. */
export interface OutsideService {
  /** True if its endpoints have names. */
  readonly headless: boolean;
  /** Returns the service's name, followed by those of its ports. */
  names(): readonly OutsideName[];
}

/**
 * A cluster's services as they can be reached from outside, which is through their own `externalIPs` or through load
 * balancers. With `headless`, this includes the endpoints of headless services that have neither. Offered by
 * `kubernetes` and used by `k8s_external`.
 */
export interface OutsideServices extends Dependency {
  /** Unix time of the last change. */
  readonly serial: number;
  /** True if all objects have been listed. */
  readonly synced: boolean;
  /**
   * Looks up the name `folded[0, end)`, which is `NAMESPACE`, `SERVICE.NAMESPACE`, or one of a service's endpoints or
   * ports.
   * @param most number of entries after which no further endpoints are read
   * @returns null if the name does not exist; empty if it exists without addresses
   */
  find(
    folded: Uint8Array,
    end: number,
    headless: boolean,
    most: number,
  ): readonly OutsideEntry[] | null;
  /**
   * Returns the services that have the address of the reverse name `folded[0, end)`, as relative names, or null if
   * there are none.
   */
  pointers(folded: Uint8Array, end: number): readonly WireName[] | null;
  /** Returns the external addresses where this DNS server itself can be reached. */
  nameServers(headless: boolean): readonly Uint8Array[];
  all(headless: boolean): Iterable<OutsideService>;
}

/** Offered by `kubernetes`, used by `k8s_external`. */
export const outsideServices: PluginPort<OutsideServices> =
  definePort<OutsideServices>('outside services');
