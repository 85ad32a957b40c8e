/** An HTTP address's connections, by client. */
import type { Socket } from 'node:net';
import { addressOf } from '../../base/http-admission.ts';
import {
  ConnectionTable,
  type EvictableConnection,
} from '../../transport/limits/connection-table.ts';

/**
 * Limits the connections to one HTTP address. At the limit, the client with the most connections loses one. This is the
 * connection that has been idle longest, or whose request began first. A client that opens many connections therefore
 * makes room at its own expense.
 */
export class ClientConnections {
  readonly #most: number;
  readonly #onEvicted: () => void;
  readonly #clients = new Map<string, ConnectionTable<HttpConnection>>();
  readonly #bySocket = new Map<Socket, HttpConnection>();

  /** @param onEvicted called for each connection closed to make room */
  constructor(most: number, onEvicted: () => void) {
    this.#most = Math.max(1, most);
    this.#onEvicted = onEvicted;
  }

  get size(): number {
    return this.#bySocket.size;
  }

  /** @param changed called when the number of connections has changed */
  add(socket: Socket, changed: () => void): void {
    const address = addressOf(socket);
    const known = this.#clients.get(address);
    if (this.size >= this.#most) this.#heaviest(known)?.evict();
    const table = known ?? new ConnectionTable<HttpConnection>(this.#onEvicted);
    const connection = new HttpConnection(socket);
    this.#clients.set(address, table);
    this.#bySocket.set(socket, connection);
    table.add(connection, Infinity);
    changed();
    socket.once('close', () => {
      this.#bySocket.delete(socket);
      table.delete(connection);
      if (table.size === 0 && this.#clients.get(address) === table) this.#clients.delete(address);
      changed();
    });
  }

  /** Call when a request has arrived. */
  begun(socket: Socket): void {
    this.#use(socket, 1);
  }

  /** Call this when a request has been answered, or its client has disconnected. */
  done(socket: Socket): void {
    this.#use(socket, -1);
  }

  #use(socket: Socket, requests: number): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined) return;
    connection.requests += requests;
    this.#clients.get(addressOf(socket))?.touch(connection);
  }

  /** Returns the client with the most connections, or the new one if there is a tie. */
  #heaviest(
    newcomer: ConnectionTable<HttpConnection> | undefined,
  ): ConnectionTable<HttpConnection> | undefined {
    let heaviest = newcomer;
    for (const table of this.#clients.values())
      if (table.size > (heaviest?.size ?? 0)) heaviest = table;
    return heaviest;
  }
}

/** A connection as seen by the connection table. */
class HttpConnection implements EvictableConnection {
  readonly #socket: Socket;
  /** Number of unanswered requests. */
  requests = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  get busy(): boolean {
    return this.requests > 0;
  }

  finish(): void {
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
