/** Things that are made once for each route. */
import type { Route } from '../../wire/query.ts';

/**
 * What belongs to a route (listen address, zone, view), such as the handles of its counters: made at its first query, after
 * which finding it is one load. `make` is told only what the labels of metrics are made of.
 */
export function perRoute<T extends object>(make: (route: Route) => T): (route: Route) => T {
  const made: (T | undefined)[] = [];
  return (route) => {
    const known = made[route.index];
    if (known !== undefined) return known;
    // No holes: they would make every load a dictionary's.
    while (made.length < route.index) made.push(undefined);
    return (made[route.index] = make(route));
  };
}
