import { netHolds, type Net } from '../../base/ip.ts';

/**
 * The treatment of a PROXY protocol header. `use` applies it, and `ignore` reads and discards it. `reject` refuses
 * connections that have one, and `skip` treats all bytes as the client's.
 */
export type ProxyAction = 'use' | 'ignore' | 'reject' | 'skip';

/** The proxies whose headers are trusted. Plain data. */
export interface ProxyPlan {
  /** Addresses whose headers are used. If this is empty, `others` applies to all. */
  readonly allow: readonly Net[];
  /** The action for all other addresses. */
  readonly others: ProxyAction;
  /** Milliseconds for which a datagram that is only a header applies to the datagrams after it; 0 disables this. */
  readonly sessionMs: number;
  readonly sessions: number;
}

/** Returns what to do with a header from the address `bytes[at, …)`. */
export function proxyAction(
  { allow, others }: ProxyPlan,
  bytes: Uint8Array,
  at: number,
  family: 4 | 6,
): ProxyAction {
  for (const net of allow) if (netHolds(net, bytes, at, family === 4 ? 4 : 16)) return 'use';
  return others;
}
