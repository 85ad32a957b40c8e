/** Limits TLS handshakes on servers that leave TLS to the runtime: HTTPS for plugins, and dnstap. */
import type { Server, Socket } from 'node:net';
import { ConnectionTable, type EvictableConnection } from '../limits/connection-table.ts';

/**
 * Connections to a TLS server whose handshake is unfinished, limited in number. Beyond the limit, the oldest is closed,
 * so that silent clients cannot use up all file descriptors. The server's own `handshakeTimeout` limits how long each
 * may last.
 */
export class HandshakeBound {
  readonly #table: ConnectionTable<EvictableConnection>;
  /**
   * Keyed by remote address and port, because the runtime offers no other way to get from a TLS socket to its TCP
   * socket.
   */
  readonly #byPeer = new Map<string, EvictableConnection>();

  /**
   * @param server from `node:tls` or `node:https`
   * @param evicted called for each connection closed to make room
   */
  constructor(server: Server, most: number, evicted: () => void) {
    this.#table = new ConnectionTable(evicted);
    server.prependListener('connection', (socket: Socket) => this.#begun(socket, most));
    server.prependListener('secureConnection', (socket: Socket) => this.#done(peerOf(socket)));
  }

  /** Closes all connections with an unfinished handshake. Otherwise, a closing server would wait for them. */
  cut(): void {
    for (const connection of this.#table) connection.destroy();
  }

  #begun(socket: Socket, most: number): void {
    const end = (): void => void socket.destroy();
    const connection = { busy: false, finish: end, destroy: end };
    const peer = peerOf(socket);
    this.#byPeer.set(peer, connection);
    this.#table.add(connection, most);
    socket.once('close', () => this.#done(peer));
  }

  #done(peer: string): void {
    const connection = this.#byPeer.get(peer);
    this.#byPeer.delete(peer);
    if (connection !== undefined) this.#table.delete(connection);
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
