/**
 * Limits the number of connections: at the limit the one that has been idle longest is closed,
 * never the new one, which may be the API server's.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Server as TcpServer, Socket } from 'node:net';

/**
 * Limits the connections of an HTTP server that shares nothing with others; one that is answering a
 * request is closed last.
 */
export function boundConnections(server: Server | TlsServer, most: number): void {
  const connections = new IdleConnections(most);
  server.on('connection', (socket: Socket) => connections.came(socket));
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    connections.asks(socket);
    response.on('close', () => connections.rests(socket));
  });
}

/**
 * Limits the connections of a server that only receives: at the limit the one that has been silent
 * longest is closed.
 * @param onEnd called for each connection closed to make room
 */
export function boundSenders(server: TcpServer, most: number, onEnd: () => void): void {
  /** Ordered by when they last sent, most recent last. */
  const senders = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    senders.add(socket);
    socket.on('data', () => {
      if (senders.delete(socket)) senders.add(socket);
    });
    socket.once('close', () => senders.delete(socket));
    if (senders.size <= most) return;
    const [silent = socket] = senders;
    senders.delete(silent);
    silent.destroy();
    onEnd();
  });
}

/**
 * Connections by the client's address and port, because TLS has another socket object than the TCP
 * socket below.
 */
class IdleConnections {
  readonly #most: number;
  /** Connections without a request; the one that has been idle longest comes first. */
  readonly #idle = new Map<string, Socket>();
  /** Connections with a request; the oldest request comes first. */
  readonly #busy = new Map<string, Socket>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Called when a connection was accepted. */
  came(socket: Socket): void {
    const key = keyOf(socket);
    this.#idle.set(key, socket);
    socket.once('close', () => {
      // A client may return from the same port before its previous connection is known to have
      // closed.
      for (const known of [this.#idle, this.#busy])
        if (known.get(key) === socket) known.delete(key);
    });
    if (this.#idle.size + this.#busy.size <= this.#most) return;
    // If all others are busy, the one that has been busy longest is closed.
    const others = this.#idle.size > 1 ? this.#idle : this.#busy;
    const [[longest, victim] = [key, socket]] = others;
    others.delete(longest);
    victim.destroy();
  }

  /** Called when it has received a request. */
  asks(socket: Socket): void {
    move(keyOf(socket), this.#idle, this.#busy);
  }

  /** Called when its request has been answered. */
  rests(socket: Socket): void {
    move(keyOf(socket), this.#busy, this.#idle);
  }
}

function move(key: string, from: Map<string, Socket>, to: Map<string, Socket>): void {
  const socket = from.get(key);
  if (socket === undefined) return;
  from.delete(key);
  to.set(key, socket);
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}
