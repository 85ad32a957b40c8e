import { netHolds, type Net } from '../../base/ip.ts';

/**
 * The action for a PROXY protocol header: `use` it; `ignore` it (read and discard it); `reject`
 * connections that have one; or `skip`: treat all bytes as the client's.
 */
export type ProxyAction = 'use' | 'ignore' | 'reject' | 'skip';

/** The proxies whose headers are trusted. Plain data. */
export interface ProxyPlan {
  /** Addresses whose headers are used; empty: `others` applies to all. */
  readonly allow: readonly Net[];
  /** The action for all other addresses. */
  readonly others: ProxyAction;
  /**
   * Milliseconds for which a datagram that is only a header holds for the following ones; 0: not at
   * all.
   */
  readonly sessionMs: number;
  /** The most UDP sessions. */
  readonly sessions: number;
}

/** The action for a header from the address `bytes[at, …)`. */
export function proxyAction(
  { allow, others }: ProxyPlan,
  bytes: Uint8Array,
  at: number,
  family: 4 | 6,
): ProxyAction {
  for (const net of allow) if (netHolds(net, bytes, at, family === 4 ? 4 : 16)) return 'use';
  return others;
}
