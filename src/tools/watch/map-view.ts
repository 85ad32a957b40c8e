/**
 * The map: the servers of each workload, the destinations of their queries, and the upstreams. Each
 * edge is a filter, and counts the lookups that the filter selects.
 */
import { filterOf } from '../capture/filter.ts';
import type { LookupRing } from './lookup-ring.ts';
import { MapCounts } from './map-counts.ts';
import type { MapQuery, MapView } from './map-shape.ts';
import type { Parties } from './parties.ts';
import type { InputRow } from './view.ts';

/** Lookups in full detail that are counted, the newest ones: as many as a list of lookups reads. */
const SCAN_MAX = 50_000;

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
    const wanted = filters.length === 0 ? queries : queries.filter((query) => isWanted(query));
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
