/** Limits the TLS handshakes of servers whose TLS the runtime handles: HTTPS for plugins, dnstap. */
import type { Server, Socket } from 'node:net';
import { ConnectionTable, type EvictableConnection } from '../limits/connection-table.ts';

/**
 * Connections to a TLS server with an unfinished handshake, limited in number. Beyond the limit, the oldest one is
 * closed, so that silent clients cannot use up all file descriptors. Their time limit is the server's own
 * `handshakeTimeout`.
 */
export class HandshakeBound {
  readonly #table: ConnectionTable<EvictableConnection>;
  /** By remote address and port, because the runtime provides no other link from a TLS socket to its TCP socket. */
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

  /** Closes all connections with an unfinished handshake, for which a closing server would wait. */
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
