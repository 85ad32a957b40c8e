/** Objects created once per route. */
import type { Route } from '../../transport/query.ts';

/**
 * Caches one object, such as metric handles, per route (listen address, zone, view). The object is created at the
 * route's first query, and after that is found with a single load. `make` may use only the fields that become metric
 * labels.
 */
export function perRoute<T extends object>(make: (route: Route) => T): (route: Route) => T {
  const made: (T | undefined)[] = [];
  return (route) => {
    const known = made[route.index];
    if (known !== undefined) return known;
    // The array must have no holes, because they would turn it into a slow dictionary.
    while (made.length < route.index) made.push(undefined);
    return (made[route.index] = make(route));
  };
}
