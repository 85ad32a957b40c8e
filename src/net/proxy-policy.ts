import { netHolds, type Net } from '../base/ip.ts';

/**
 * What is done about a header of the PROXY protocol: `use` it, `ignore` it (read past it), `reject` who sends one, or `skip`
 * looking for one: what comes is what the client sends.
 */
export type ProxyAction = 'use' | 'ignore' | 'reject' | 'skip';

/** Whose headers are believed. Plain data. */
export interface ProxyPlan {
  /** Whose headers are used; empty: `others` holds for everybody. */
  readonly allow: readonly Net[];
  /** What holds for everybody else. */
  readonly others: ProxyAction;
  /** How long a datagram that is nothing but a header speaks for those behind it, milliseconds; 0: it does not. */
  readonly sessionMs: number;
  /** Clients of UDP that are remembered so. */
  readonly sessions: number;
}

/** What holds for a header from the address `bytes[at, …)`. */
export function proxyAction(
  { allow, others }: ProxyPlan,
  bytes: Uint8Array,
  at: number,
  family: 4 | 6,
): ProxyAction {
  for (const net of allow) if (netHolds(net, bytes, at, family === 4 ? 4 : 16)) return 'use';
  return others;
}
