/** Narrows a headless service to the endpoints near the client, using kube-proxy's rule. */
import type { Counter, Registry } from '../../../metrics/registry.ts';
import { tailor } from '../../../transport/reply-scope.ts';
import type { Query } from '../../../transport/query.ts';
import type { EndpointReader } from '../contract/endpoint-encoding.ts';
import { FAMILY, familyOf, indexOf } from '../contract/endpoint-index.ts';
import type { ClientPlace } from './client-places.ts';
import type { SliceRecord } from './cluster.ts';

/** Families are `FAMILY` flags. */
export interface NearEndpoints {
  readonly place: ClientPlace;
  /** Address families restricted to endpoints with a hint for the client's node. */
  readonly byNode: number;
  /** Address families restricted to endpoints with a hint for the client's zone. */
  readonly byZone: number;
}

/** kube-proxy has one instance for each address family, and no rule for domain names. */
const ADDRESSES = FAMILY.V4 | FAMILY.V6;

/**
 * Applies `topologyModeFromHints` of kube-proxy (KEP-2433, KEP-4444, KEP-3015), separately for IPv4
 * and IPv6 as kube-proxy does:
 *
 * 1. If every ready endpoint has hints for nodes, and one of them names the client's node: the
 *    endpoints for this node.
 * 2. Else, if every ready endpoint has hints for zones, and one of them names the client's zone: the
 *    endpoints for this zone.
 * 3. Else all ready endpoints.
 *
 * So the result is never empty, unless there are no ready endpoints at all.
 */
export class Topology {
  readonly #placeOf: (query: Query) => ClientPlace;
  readonly #counters: Readonly<Record<'node' | 'zone' | 'all', Counter>>;

  constructor(placeOf: (query: Query) => ClientPlace, metrics: Registry) {
    this.#placeOf = placeOf;
    const family = metrics.counter(
      'ndots_kubernetes_topology_answers_total',
      'Answers for headless services whose endpoints have hints, by selected endpoints: node, zone, or all.',
      ['by'],
    );
    const [node, zone, all] = [family.with('node'), family.with('zone'), family.with('all')];
    this.#counters = { node, zone, all };
  }

  /**
   * Chooses the endpoints for the answer. Null means that every client gets all of them.
   * @param slices read twice
   */
  choose(
    query: Query,
    slices: () => Iterable<SliceRecord>,
    reader: EndpointReader,
  ): { readonly near: NearEndpoints | null } | null {
    let families = 0;
    let unzoned = 0;
    let unnoded = 0;
    for (const slice of slices()) {
      const index = indexOf(slice);
      families |= index.families;
      unzoned |= index.unzoned;
      unnoded |= index.unnoded;
    }
    const noded = families & ~unnoded & ADDRESSES;
    const zoned = families & ~unzoned & ADDRESSES;
    if ((noded | zoned) === 0) return null;
    // This is needed even if all endpoints are chosen, because another client may get fewer.
    tailor(query);
    const place = this.#placeOf(query);
    let byNode = 0;
    let byZone = 0;
    for (const slice of slices()) {
      for (reader.over(slice.endpoints); reader.next();) {
        const family = familyOf(reader);
        if (reader.isForNode(place.node)) byNode |= family & noded;
        if (reader.isForZone(place.zone)) byZone |= family & zoned;
      }
    }
    byZone &= ~byNode;
    const by = byNode !== 0 ? 'node' : byZone !== 0 ? 'zone' : 'all';
    this.#counters[by].add(1);
    return { near: by === 'all' ? null : { place, byNode, byZone } };
  }
}

/** True if the reader's current endpoint was chosen. */
export function isNear({ place, byNode, byZone }: NearEndpoints, reader: EndpointReader): boolean {
  const family = familyOf(reader);
  if ((family & byNode) !== 0) return reader.isForNode(place.node);
  return (family & byZone) === 0 || reader.isForZone(place.zone);
}
