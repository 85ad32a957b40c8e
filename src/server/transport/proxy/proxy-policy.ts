import { netHolds, type Net } from '../../base/ip.ts';

/**
 * The treatment of a PROXY protocol header: `use` it; `ignore` it (read and discard it); `reject` connections that have
 * one; or `skip`: treat all bytes as the client's.
 */
export type ProxyAction = 'use' | 'ignore' | 'reject' | 'skip';

/** The proxies whose headers are trusted. Plain data. */
export interface ProxyPlan {
  /** Addresses whose headers are used; empty: `others` applies to all. */
  readonly allow: readonly Net[];
  /** The action for all other addresses. */
  readonly others: ProxyAction;
  /** Milliseconds for which a datagram that is only a header applies to the following ones; 0: not at all. */
  readonly sessionMs: number;
  /** Maximum number of UDP sessions. */
  readonly sessions: number;
}

/** Returns the action for a header from the address `bytes[at, …)`. */
export function proxyAction(
  { allow, others }: ProxyPlan,
  bytes: Uint8Array,
  at: number,
  family: 4 | 6,
): ProxyAction {
  for (const net of allow) if (netHolds(net, bytes, at, family === 4 ? 4 : 16)) return 'use';
  return others;
}
