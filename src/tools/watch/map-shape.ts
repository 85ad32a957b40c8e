/** The shape of the map: plain data, as that of other views (view.ts). */
import type { GivenFilter } from '../capture/filter.ts';
import type { InputRow, Latency } from './view.ts';

/** The role of a node. */
export type MapRole = 'clients' | 'server' | 'behind' | 'upstream';

/** A group of clients, or a server. */
export interface MapNode {
  readonly id: string;
  readonly role: MapRole;
  /** Of a server, or of the only client of a group without a workload; empty otherwise. */
  readonly address: string;
  /** `shop/deploy/cart`, `kube-system/kube-dns`; empty: only the address is known. */
  readonly name: string;
  /** Clients of a group; 0 for a server. */
  readonly clients: number;
  /** Groups that this one stands for, those with fewest lookups; 0: it is one. */
  readonly more: number;
  readonly lookups: number;
}

/** Lookups from one node that reached another. */
export interface MapEdge {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  /** Lookups with a query on this edge: the same as the list of lookups has for `filter`. */
  readonly lookups: number;
  readonly queries: number;
  /** Queries a second, over the window. */
  readonly rate: number;
  readonly lost: number;
  /** Replies that are errors: neither NOERROR nor NXDOMAIN. */
  readonly failed: number;
  readonly latency: Pick<Latency, 'p50' | 'p99'>;
  /** A line of filters that lets exactly these lookups through. */
  readonly filter: string;
}

/** Plain data, as other views. */
export interface MapView {
  readonly view: 'map';
  readonly atMs: number;
  readonly window: { readonly fromMs: number; readonly toMs: number };
  readonly inputs: readonly InputRow[];
  readonly nodes: readonly MapNode[];
  readonly edges: readonly MapEdge[];
  /** Lookups that were counted, of the window's. */
  readonly lookups: number;
  readonly total: number;
  /** Servers that are not shown, those with fewest lookups. */
  readonly serversLeftOut: number;
  readonly lostByKernel: number;
}

/** The request of a face. */
export interface MapQuery {
  readonly view: 'map';
  readonly filters?: readonly GivenFilter[];
}
