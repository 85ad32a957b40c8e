/**
 * The map: which workloads ask which servers, where their queries are taken to, and which upstreams
 * these ask. Each edge is a filter, and counts the lookups that the filter lets through.
 */
import { filterOf, type GivenFilter } from '../capture/filter.ts';
import type { LookupRing } from './lookup-ring.ts';
import { MapCounts } from './map-counts.ts';
import type { Parties } from './parties.ts';
import type { InputRow, Latency } from './view.ts';

/** Lookups in full detail that are counted, the newest ones: as many as a list of lookups reads. */
const SCAN_MAX = 50_000;

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

/** The parts of a model that are read. */
export interface MappedModel {
  readonly nowMs: number;
  readonly limits: { readonly windowMs: number };
  readonly ring: LookupRing;
  readonly parties: Parties;
  readonly inputs: readonly { row(): InputRow }[];
  lostSince(fromMs: number): number;
}

/** Computes the map. @throws Problem with the code `usage` for a filter that cannot be */
export function mapView(model: MappedModel, { filters = [] }: MapQuery): MapView {
  const { nowMs, limits, parties } = model;
  const atMs = Number.isFinite(nowMs) ? nowMs : 0;
  const counted = new MapCounts(parties);
  const isWanted = filterOf(filters, parties.owners);
  let total = 0;
  let firstMs = atMs;
  for (const { id, startMs, queries } of model.ring.newest(nowMs - limits.windowMs)) {
    total++;
    if (total > SCAN_MAX) continue;
    // The same choice as that of the list of lookups; edges are of the queries that match.
    const wanted = queries.filter((query) => isWanted(query));
    if (wanted.length === 0) continue;
    firstMs = Math.min(firstMs, startMs);
    counted.add(id, wanted);
  }
  const seconds = Math.max(1, (atMs - firstMs) / 1000);
  return {
    view: 'map',
    atMs,
    window: { fromMs: firstMs, toMs: atMs },
    inputs: model.inputs.map((input) => input.row()),
    ...counted.drawn(filters, seconds),
    lookups: counted.lookups,
    total,
    lostByKernel: model.lostSince(nowMs - limits.windowMs),
  };
}
