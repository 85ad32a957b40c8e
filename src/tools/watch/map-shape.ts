/** The shape of the map, which is plain data like other views (view.ts). */
import type { GivenFilter } from '../capture/filter.ts';
import type { InputRow, Latency } from './view.ts';

export type MapRole = 'clients' | 'server' | 'behind' | 'upstream';

/** A group of clients, or a server. */
export interface MapNode {
  readonly id: string;
  readonly role: MapRole;
  /** The address of a server, or of the only client in a group without a workload. Otherwise empty. */
  readonly address: string;
  /** `shop/deploy/cart`, `kube-system/kube-dns`, or empty if only the address is known. */
  readonly name: string;
  /** The number of clients in a group, or 0 for a server. */
  readonly clients: number;
  /**
   * The number of groups that are combined here, or 0 for a single group. Groups that lose queries or get errors are
   * combined last, and otherwise those with the fewest lookups first.
   */
  readonly more: number;
  readonly lookups: number;
}

/** Lookups from one node that reached another. */
export interface MapEdge {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  /** The number of lookups with a query on this edge, as the lookup list shows for `filter`. */
  readonly lookups: number;
  readonly queries: number;
  /** Queries per second over the window. */
  readonly rate: number;
  readonly lost: number;
  /** Error replies: neither NOERROR nor NXDOMAIN. */
  readonly failed: number;
  readonly latency: Pick<Latency, 'p50' | 'p99'>;
  /** A filter line that selects exactly these lookups. */
  readonly filter: string;
}

export interface MapView {
  readonly view: 'map';
  readonly atMs: number;
  readonly window: { readonly fromMs: number; readonly toMs: number };
  readonly inputs: readonly InputRow[];
  readonly nodes: readonly MapNode[];
  readonly edges: readonly MapEdge[];
  /** The number of the window's lookups that were counted. */
  readonly lookups: number;
  readonly total: number;
  /** The number of servers that are not shown because they have the fewest lookups. */
  readonly serversLeftOut: number;
  readonly lostByKernel: number;
}

export interface MapQuery {
  readonly view: 'map';
  readonly filters?: readonly GivenFilter[];
}
