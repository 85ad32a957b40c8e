/**
 * The map, which shows the servers that each workload uses, where its queries go, and the upstreams. Each edge is a
 * filter and counts the lookups that match it.
 */
import { filterOf } from '../capture/filter.ts';
import { MapCounts } from './map-counts.ts';
import type { MapQuery, MapView } from './map-shape.ts';
import type { ViewedModel } from './model-views.ts';

/** The number of lookups in full detail to count, newest first. The lookup list reads just as many. */
const SCAN_MAX = 50_000;

/** Computes the map. @throws Problem with code `usage` for an invalid filter */
export function mapView(model: ViewedModel, { filters = [] }: MapQuery): MapView {
  const { nowMs, limits, parties } = model;
  const atMs = Number.isFinite(nowMs) ? nowMs : 0;
  const counted = new MapCounts(parties);
  const isWanted = filterOf(filters, parties.owners);
  let total = 0;
  let firstMs = atMs;
  for (const { id, startMs, queries } of model.ring.newest(nowMs - limits.windowMs)) {
    total++;
    if (total > SCAN_MAX) continue;
    // Selects the same lookups as the lookup list, while edges show the matching queries.
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
