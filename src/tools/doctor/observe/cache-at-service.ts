/** Node-local caches at the DNS Service's own address, which answer in place of the DNS pods. */
import type { Observations } from './observations.ts';
import type { RejectedTime } from './rejected.ts';
import { isServer, upstreams } from './roles.ts';
import type { ServerView } from './server-view.ts';
import { MIN_CASES, NEARLY_ALL } from '../thresholds/evidence.ts';

/**
 * Returns the address from which a node-local cache at this address sends its own queries, or null if there is none. No
 * query to the address is translated to a pod. A client queries other servers for cluster names that others query the address
 * for, but not while the address rejects queries. (A DNS pod queries its upstreams only for external names.)
 */
export function cacheAtService(
  observed: Observations,
  address: string,
  times: readonly RejectedTime[],
): string | null {
  const { backends, clients, servers } = observed;
  if (backends.list.some(({ services }) => services.has(address))) return null;
  const ups = upstreams(observed);
  const duration = (sum: number, { fromMs, toMs }: RejectedTime): number => sum + toMs - fromMs;
  const rejectedMs = times.reduce(duration, 0);
  const cache = clients.list.find((client) => {
    if (client.servers.has(address) || isServer(observed, client.address)) return false;
    const asked = servers.list.filter(
      (server) => server.clients.has(client.address) && !ups.has(server.address),
    );
    if (!knowsOnlyNamesOf(observed, address, asked)) return false;
    const all = asked.reduce((sum, { outcomes }) => sum + outcomes.asked, 0);
    const meanwhile = times.reduce(
      (sum, { fromMs, toMs }) =>
        asked.reduce((of, server) => of + server.within(fromMs, toMs).asked, sum),
      0,
    );
    // At the usual rate, it would have sent at least a few.
    const usual = (all * rejectedMs) / (observed.lastMs - observed.firstMs);
    return meanwhile === 0 && usual >= MIN_CASES;
  });
  return cache?.address ?? null;
}

/** True if (nearly) all names that these servers are queried for are also queried for at the address. */
function knowsOnlyNamesOf(
  { names }: Observations,
  address: string,
  asked: readonly ServerView[],
): boolean {
  const theirs = names.list.filter(({ servers }) =>
    asked.some((view) => servers.has(view.address)),
  );
  const shared = theirs.filter(({ servers }) => servers.has(address));
  return shared.length > 0 && shared.length >= NEARLY_ALL * theirs.length;
}
