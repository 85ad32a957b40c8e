/** The server, time and size that `ndots query` prints with a reply, in dig's format and as JSON. */
import { systemClock } from '../../../server/base/clock.ts';
import { messageDocument } from '../../../server/wire/exchange.ts';
import type { Protocol } from '../../../server/wire/transports.ts';
import type { QueryOptions } from './query-draft.ts';
import type { QueryServer } from './query-server.ts';

/** The current time in seconds since 1970, for signatures. */
export function wallSeconds(): number {
  return Math.floor(systemClock.wall() / 1000);
}

/** dig's time and server lines, printed after the reply. */
export function serverLines(
  { port }: Pick<QueryOptions, 'port'>,
  { address, name }: QueryServer,
  via: Protocol,
  tookMs: number,
): string {
  return `;; Query time: ${Math.round(tookMs)} msec\n;; SERVER: ${address}#${port}(${name}) (${via.toUpperCase()})\n`;
}

/** Builds a document of `kind: Reply`. */
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
