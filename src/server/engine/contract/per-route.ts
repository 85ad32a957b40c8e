/** Objects created once per route. */
import type { Route } from '../../transport/query.ts';

/**
 * Caches one object per route (listen address, zone, view), such as metric handles. It is created at the route's first
 * query and found by a single load afterwards. `make` may only use the fields that become metric labels.
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
