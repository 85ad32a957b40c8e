/** A server's upstreams, and the one that keeps its queries waiting. */
import { took } from '../texts.ts';
import { FELT_MS, SLOW_QUANTILE } from '../thresholds/evidence.ts';
import type { Observations } from './observations.ts';
import type { ServerView } from './server-view.ts';

export function upstreamsOf(
  { servers, serverNames }: Observations,
  server: string,
): readonly ServerView[] {
  const host = serverNames.hostOf(server);
  return servers.list.filter(({ address, clients }) => address !== server && clients.has(host));
}

/** True if one in ten replies takes about as long as this, or longer. Milliseconds. */
export function isSlow(view: ServerView, leastMs: number): boolean {
  return view.quantile(SLOW_QUANTILE) >= leastMs;
}

/**
 * The slow upstream of this server. If it queries none itself, a pod behind its address may, so the
 * only other slow server counts. Null if there is none.
 */
export function slowUpstreamOf(observed: Observations, server: string): ServerView | null {
  const isFelt = (view: ServerView): boolean => isSlow(view, FELT_MS);
  const own = upstreamsOf(observed, server).find(isFelt);
  if (own !== undefined) return own;
  const others = observed.servers.list.filter((view) => view.address !== server && isFelt(view));
  return others.length === 1 ? others[0]! : null;
}

export function slowUpstreamText(upstream: ServerView | null): readonly string[] {
  if (upstream === null) return [];
  // A quantile is known within a factor of two.
  const least = took(upstream.quantile(SLOW_QUANTILE) / 2);
  return [
    `The upstream ${upstream.address} is slow: one in ten of its replies takes more than ${least}.`,
  ];
}
