/**
 * DNS servers' TCP segments that are retransmitted again and again because the server never gets an
 * acknowledgement for them.
 */
import { BoundedMap } from './bounded-map.ts';
import { STUCK_SEGMENT } from '../thresholds/transport.ts';

const SOCKETS_MAX = 5000;

/** The segments that a server retransmits on one connection. */
export interface StuckSegment {
  readonly client: string;
  readonly server: string;
  readonly firstMs: number;
  lastMs: number;
  /** The number of retransmissions, each after its timer has expired. */
  times: number;
  /** The size of the shortest one. */
  bytes: number;
}

/** Retransmissions by the client’s end of the connection. */
export class StuckSegments {
  readonly #sockets = new BoundedMap<string, StuckSegment>(SOCKETS_MAX);

  /** Ignores copies of packets on their way to the client, which follow at once with the same end. */
  again(server: string, client: string, port: number, bytes: number, timeMs: number): void {
    if (bytes < STUCK_SEGMENT.bytes) return;
    const made = { client, server, firstMs: timeMs, lastMs: -Infinity, times: 0, bytes };
    const socket = this.#sockets.at(`${client} ${port}`, () => made);
    if (socket === null || timeMs - socket.lastMs < STUCK_SEGMENT.timerMs) return;
    socket.lastMs = timeMs;
    socket.times++;
    socket.bytes = Math.min(socket.bytes, bytes);
  }

  /** Connections on which the server retransmitted too often for chance. */
  get list(): readonly StuckSegment[] {
    return this.#sockets.list.filter(({ times }) => times >= STUCK_SEGMENT.times);
  }
}
