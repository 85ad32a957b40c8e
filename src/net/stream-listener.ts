import type { Server, Socket } from 'node:net';

import type { Proto } from '../wire/query.ts';
import { bindProblem } from './bind-problem.ts';
import { HeldBytes } from './held-bytes.ts';
import {
  makeCounters,
  type Endpoint,
  type Listener,
  type ListenerParts,
  type ListenerCounters,
} from './listener.ts';
import { StreamConnection, type StreamHost } from './stream-connection.ts';
import { TimerWheel } from './timer-wheel.ts';

/** How late a connection's time limit may be met. */
const TICK_MS = 100;
/** How many of the oldest connections are looked at for one to close. */
const EVICTION_LOOK = 64;
const BACKLOG = 1024;
/** Bytes that all connections together may hold for clients that do not read on or do not finish what they say. */
export const HELD_MAX = 16 * 1024 * 1024;

/** Makes the server; `accept` takes each connection that is ready for messages. */
export type MakeServer = (parts: ListenerParts, accept: (socket: Socket) => void) => Server;

/** A listener for connections that carry length-prefixed messages: TCP and TLS. */
export class StreamListener implements Listener, StreamHost {
  readonly endpoint: Endpoint;
  readonly parts: ListenerParts;
  readonly proto: Proto;
  readonly counters: ListenerCounters;
  readonly wheel: TimerWheel;
  readonly heldBytes: HeldBytes<StreamConnection>;
  readonly #server: Server;
  /** The longest idle first. */
  readonly #connections = new Set<StreamConnection>();
  /** All sockets, also those that are still shaking hands. */
  readonly #sockets = new Set<Socket>();
  #port: number;
  #closing = false;
  #onEmpty: (() => void) | null = null;

  constructor(parts: ListenerParts, proto: Proto, makeServer: MakeServer) {
    this.parts = parts;
    this.proto = proto;
    this.endpoint = parts.endpoint;
    this.#port = parts.endpoint.port;
    this.counters = parts.counters ?? makeCounters();
    this.wheel = new TimerWheel(parts.clock, TICK_MS);
    this.heldBytes = new HeldBytes(HELD_MAX, () => this.counters.evicted++);
    this.#server = makeServer({ ...parts, counters: this.counters }, this.#accept);
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  get port(): number {
    return this.#port;
  }

  async open(): Promise<void> {
    this.#port = await listen(this.#server, this.endpoint);
    this.#server.on('error', (error) =>
      this.parts.log.error(`${this.proto} listener: ${error.message}`),
    );
  }

  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    const closed = closeServer(this.#server);
    for (const connection of this.#connections) connection.finish();
    if (this.#connections.size > 0) await this.#emptied(graceMs);
    for (const connection of this.#connections) connection.destroy();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    this.wheel.stop();
  }

  touch(connection: StreamConnection): void {
    this.#connections.delete(connection);
    this.#connections.add(connection);
  }

  forget(connection: StreamConnection): void {
    if (this.#connections.delete(connection)) this.counters.connections--;
    if (this.#connections.size === 0) this.#onEmpty?.();
  }

  #accept = (socket: Socket): void => {
    // A client may be gone before we get to see it; then it has no address any more.
    if (this.#closing || socket.destroyed || socket.remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    if (this.#connections.size >= this.parts.limits.maxConnections && !this.#makeRoom()) {
      this.counters.evicted++;
      socket.destroy();
      return;
    }
    this.counters.accepted++;
    this.counters.connections++;
    this.#connections.add(new StreamConnection(this, socket));
  };

  /** Closes the longest idle connection. @returns false if none is idle */
  #makeRoom(): boolean {
    let looks = EVICTION_LOOK;
    for (const connection of this.#connections) {
      if (!connection.busy) {
        this.counters.evicted++;
        this.forget(connection);
        connection.destroy();
        return true;
      }
      if (--looks === 0) break;
    }
    return false;
  }

  #emptied(graceMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.parts.clock.after(graceMs, resolve);
      this.#onEmpty = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}

/**
 * Starts a stream server so that several threads and processes can share the port.
 * @returns the port in use
 * @throws Problem
 */
export async function listen(server: Server, endpoint: Endpoint): Promise<number> {
  const { address, port } = endpoint;
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(
        {
          host: address,
          port,
          backlog: BACKLOG,
          ipv6Only: true,
          exclusive: true,
          reusePort: canReusePort,
        },
        () => {
          server.off('error', reject);
          resolve();
        },
      );
    });
  } catch (error) {
    throw await bindProblem(error, 'tcp', endpoint);
  }
  const bound = server.address();
  return bound !== null && typeof bound === 'object' ? bound.port : port;
}

/** Systems whose SO_REUSEPORT spreads the load; elsewhere one thread listens. */
export const canReusePort = process.platform === 'linux' || process.platform === 'freebsd';

export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) return resolve();
    server.close(() => resolve());
  });
}
