/** TCP connections that clients tried to open and that were not accepted, to see which truncated replies stayed all they got. */
import { printAddress } from '../../server/base/ip.ts';
import type { SeenExchange } from '../capture/pair/seen-exchange.ts';
import { RecentlyUsed } from '../../server/base/recently-used.ts';
import type { PathEvent } from '../capture/read/packets/dissect.ts';
import { isTruncated } from './lookup-ending.ts';

/** The number of pairs of clients and servers. Beyond this, those that were not used for longest are dropped. */
const PAIRS_MAX = 10_000;
/** The number of connections per pair. Beyond this, the oldest is dropped. */
const ATTEMPTS_MAX = 16;
/** Milliseconds. A client opens the connection as soon as it has read the truncated reply. */
const OPEN_MS = 1000;

export class TcpAttempts {
  /** The times of first packets without acceptance, by client and server, and then by the client's port. */
  readonly #pairs = new RecentlyUsed<string, Map<number, number>>(PAIRS_MAX);

  path({ kind, head, addressesAt, family, sourcePort, targetPort, timeMs }: PathEvent): void {
    if (kind !== 'syn' && kind !== 'syn-ack') return;
    const size = family === 4 ? 4 : 16;
    const source = printAddress(head, addressesAt, size);
    const target = printAddress(head, addressesAt + size, size);
    if (kind === 'syn-ack') {
      this.#pairs.get(keyOf(target, source, sourcePort))?.delete(targetPort);
      return;
    }
    const key = keyOf(source, target, targetPort);
    let attempts = this.#pairs.get(key);
    if (attempts === undefined) {
      this.#pairs.set(key, (attempts = new Map()));
    }
    // A repeated first packet keeps the time of the first.
    if (attempts.has(sourcePort)) return;
    attempts.set(sourcePort, timeMs);
    if (attempts.size > ATTEMPTS_MAX) attempts.delete(attempts.keys().next().value!);
  }

  /** True if the reply was truncated and a connection that the client opened for the whole one was not accepted. */
  failedAfter(exchange: SeenExchange): boolean {
    const { client, server, repliedMs, protocol } = exchange;
    if (protocol !== 'udp' || repliedMs === null || !isTruncated(exchange)) return false;
    const attempts = this.#pairs.get(keyOf(client.address, server.address, server.port));
    for (const ms of attempts?.values() ?? [])
      if (ms >= repliedMs && ms <= repliedMs + OPEN_MS) return true;
    return false;
  }
}

function keyOf(client: string, server: string, port: number): string {
  return `${client} ${server} ${port}`;
}
