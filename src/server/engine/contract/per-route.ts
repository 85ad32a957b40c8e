/** Objects made once for each route. */
import type { Route } from '../../transport/query.ts';

/**
 * Keeps one object per route (listen address, zone, view), such as metric handles: made at the
 * first query of the route and found by a single load afterwards. `make` may only use the fields
 * that become metric labels.
 */
export function perRoute<T extends object>(make: (route: Route) => T): (route: Route) => T {
  const made: (T | undefined)[] = [];
  return (route) => {
    const known = made[route.index];
    if (known !== undefined) return known;
    // The array must have no holes, which would turn it into a slow dictionary.
    while (made.length < route.index) made.push(undefined);
    return (made[route.index] = make(route));
  };
}
