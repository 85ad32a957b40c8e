/** How the descriptors that the process may open are shared out. */
import { isWildcard } from '../../net/wildcard.ts';
import { transports } from '../../wire/transports.ts';
import type { EndpointPlan } from '../contract/endpoints.ts';

/** What the process has open before anybody connects: measured, 42 with one worker; and for each further worker. */
const OWN = 48;
const OWN_PER_WORKER = 12;
/** HTTP addresses that are reckoned with: `health`, `ready` and `prometheus`. */
const HTTP_ADDRESSES = 3;

/**
 * Connections at a time for each HTTP address, so that all of them have a quarter of what is free at most.
 * @param limit descriptors that the process may open; Infinity: no limit
 */
export function httpShare(limit: number): number {
  return Math.max(2, Math.floor((limit - OWN) / 4 / HTTP_ADDRESSES));
}

/**
 * UDP sockets towards upstreams for each worker: half of the quarter of what is free that upstreams and files have. Connections to
 * upstreams, and files, have the other half.
 * @param limit descriptors that the process may open; Infinity: no limit
 */
export function sourcePortShare(limit: number, workers: number): number {
  return Math.max(2, Math.floor(freeOf(limit, workers) / 8 / workers));
}

/** What may be opened beyond what the process needs for itself. */
function freeOf(limit: number, workers: number): number {
  return limit - OWN - OWN_PER_WORKER * (workers - 1);
}

/**
 * The endpoints, with so many connections that all listeners of all workers together have half of the free descriptors at most. A
 * quarter remains for probes and scrapers (`httpShare`), a quarter for upstreams and files.
 * @param limit descriptors that the process may open; Infinity: no limit
 * @returns also what is to be told, or null: nothing had to be lowered
 */
export function withinDescriptors(
  endpoints: readonly EndpointPlan[],
  workers: number,
  limit: number,
): { readonly endpoints: readonly EndpointPlan[]; readonly warning: string | null } {
  const listeners = endpoints.reduce((sum, { address }) => sum + (isWildcard(address) ? 2 : 1), 0);
  const share = Math.max(2, Math.floor(freeOf(limit, workers) / 2 / (listeners * workers)));
  let lowered = false;
  const fitting = endpoints.map((endpoint) => {
    const { limits, scheme } = endpoint;
    // Who shakes hands has a descriptor beside those whose connections are counted.
    const shaking = transports[scheme].tls === 'never' ? 0 : limits.handshakes;
    if (limits.connections + shaking <= share) return endpoint;
    lowered = true;
    const handshakes = Math.min(limits.handshakes, Math.ceil(share / 4));
    const connections = Math.min(limits.connections, shaking === 0 ? share : share - handshakes);
    return { ...endpoint, limits: { ...limits, handshakes, connections } };
  });
  if (!lowered) return { endpoints, warning: null };
  return {
    endpoints: fitting,
    warning:
      `this process may open ${limit} descriptors (RLIMIT_NOFILE): each listener of each worker takes at most ${share} connections, ` +
      'fewer than its limit, so that probes and UDP keep some; raise it ("ulimit -n", LimitNOFILE=), or lower "limits { connections }"',
  };
}
