/**
 * The lines of `ndots query` around a reply, as dig prints them and as JSON: server, time, size.
 */
import { systemClock } from '../../../server/base/clock.ts';
import { messageDocument } from '../../../server/wire/exchange.ts';
import type { Protocol } from '../../../server/wire/transports.ts';
import type { QueryOptions } from './query-draft.ts';
import type { QueryServer } from './query-server.ts';

/** Now, seconds since 1970, as signatures have it. */
export function wallSeconds(): number {
  return Math.floor(systemClock.wall() / 1000);
}

/** dig's lines about time and server, for below a reply. */
export function serverLines(
  { port }: Pick<QueryOptions, 'port'>,
  { address, name }: QueryServer,
  via: Protocol,
  tookMs: number,
): string {
  return `;; Query time: ${Math.round(tookMs)} msec\n;; SERVER: ${address}#${port}(${name}) (${via.toUpperCase()})\n`;
}

/** A document of `kind: Reply`. */
export function replyDocument(
  bytes: Uint8Array,
  { port }: Pick<QueryOptions, 'port'>,
  { name }: QueryServer,
  via: Protocol,
  tookMs: number,
): object {
  return {
    apiVersion: 'ndots.dev/v1',
    kind: 'Reply',
    server: name,
    port,
    transport: via,
    tookMs: Math.round(tookMs * 10) / 10,
    ...messageDocument(bytes),
  };
}
