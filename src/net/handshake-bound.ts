/** Bounds the handshakes of TLS servers that the runtime runs itself: HTTPS for plugins, dnstap. */
import type { Server, Socket } from 'node:net';
import { ConnectionTable, type EvictableConnection } from './connection-table.ts';

/**
 * Connections to a TLS server that have not shown yet that they speak TLS, bounded in number: beyond it the one that came first
 * goes, so that who says nothing takes no descriptors from others. Their time is the server's own `handshakeTimeout`.
 */
export class HandshakeBound {
  readonly #table: ConnectionTable<EvictableConnection>;
  /** By the other end of the connection: the runtime gives no other way from the encrypted socket to the one below. */
  readonly #byPeer = new Map<string, EvictableConnection>();

  /**
   * @param server of `node:tls` or `node:https`
   * @param evicted is called for each connection that has to go
   */
  constructor(server: Server, most: number, evicted: () => void) {
    this.#table = new ConnectionTable(evicted);
    server.prependListener('connection', (socket: Socket) => this.#begun(socket, most));
    server.prependListener('secureConnection', (socket: Socket) => this.#done(peerOf(socket)));
  }

  /** Ends all that are under way: a server that is closed would wait for them. */
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
