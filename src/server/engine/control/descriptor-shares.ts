/** Divides the process's file descriptors among their uses. */
import { isWildcard } from '../../transport/wildcard.ts';
import { transports } from '../../wire/transports.ts';
import type { EndpointPlan } from '../contract/endpoints.ts';

/**
 * Number of descriptors that the process has open before the first client (measured: 42 with one worker), and the
 * number for each additional worker.
 */
const OWN = 48;
const OWN_PER_WORKER = 12;
/** The assumed number of HTTP addresses: `health`, `ready` and `prometheus`. */
const HTTP_ADDRESSES = 3;

/**
 * Returns the maximum number of connections per HTTP address, so that together they use at most a quarter of the free
 * descriptors.
 * @param limit descriptors that the process may open; Infinity for no limit
 */
export function httpShare(limit: number): number {
  return Math.max(2, Math.floor((limit - OWN) / 4 / HTTP_ADDRESSES));
}

/**
 * Returns the maximum number of UDP sockets for upstreams per worker. All workers together get an eighth of the free
 * descriptors. Another eighth is left for connections to upstreams and for files.
 * @param limit descriptors that the process may open; Infinity for no limit
 */
export function sourcePortShare(limit: number, workers: number): number {
  return Math.max(2, Math.floor(freeOf(limit, workers) / 8 / workers));
}

function freeOf(limit: number, workers: number): number {
  return limit - OWN - OWN_PER_WORKER * (workers - 1);
}

/**
 * Lowers the connection limits of listen addresses so that all workers' listeners together use at most half of the free
 * descriptors. A quarter is left for probes and scrapers (`httpShare`), and a quarter for upstreams and files.
 * @param limit descriptors that the process may open; Infinity for no limit
 * @returns also a warning about it, or null if nothing had to be lowered
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
    // Connections in a TLS handshake are counted separately, and need descriptors too.
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
      `this process may open ${limit} descriptors (RLIMIT_NOFILE), so each listener in each worker accepts at most ${share} connections, ` +
      'which is fewer than its limit but leaves some for probes and UDP; raise the limit ("ulimit -n", LimitNOFILE=) or lower "limits { connections }"',
  };
}
