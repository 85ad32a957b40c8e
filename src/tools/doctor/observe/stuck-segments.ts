/**
 * TCP segments of DNS servers that are sent again each time their timer runs out: the server never
 * gets an acknowledgement for them.
 */
import { BoundedMap } from './bounded-map.ts';
import { STUCK_SEGMENT } from '../thresholds/transport.ts';

const SOCKETS_MAX = 5000;

/** The segments that a server repeats for one connection. */
export interface StuckSegment {
  readonly client: string;
  readonly server: string;
  readonly firstMs: number;
  lastMs: number;
  /** Repeats, each later than a retransmission timer. */
  times: number;
  /** Of the shortest. */
  bytes: number;
}

/** By the client’s end of the connection. */
export class StuckSegments {
  readonly #sockets = new BoundedMap<string, StuckSegment>(SOCKETS_MAX);

  /** Packets that are copied on their way to the client have the same end there, and come at once. */
  again(server: string, client: string, port: number, bytes: number, timeMs: number): void {
    if (bytes < STUCK_SEGMENT.bytes) return;
    const made = { client, server, firstMs: timeMs, lastMs: -Infinity, times: 0, bytes };
    const socket = this.#sockets.at(`${client} ${port}`, () => made);
    if (socket === null || timeMs - socket.lastMs < STUCK_SEGMENT.timerMs) return;
    socket.lastMs = timeMs;
    socket.times++;
    socket.bytes = Math.min(socket.bytes, bytes);
  }

  /** Connections whose server repeated too often for chance. */
  get list(): readonly StuckSegment[] {
    return this.#sockets.list.filter(({ times }) => times >= STUCK_SEGMENT.times);
  }
}
