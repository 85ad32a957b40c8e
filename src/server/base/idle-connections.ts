/**
 * Limits the number of connections. At the limit, the connection that has been idle longest is closed. The new
 * connection never is, because it may be the API server's.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Server as TcpServer, Socket } from 'node:net';

/**
 * Limits the connections to an HTTP server that has its own limit. Connections with a request in progress are closed
 * last, and those whose reply has begun after all others. A client without permission cannot hold one of these, but many
 * of its requests may wait for a decision about one forged token.
 */
export function boundConnections(server: Server | TlsServer, most: number): void {
  const connections = new IdleConnections(most);
  server.on('connection', (socket: Socket) => connections.came(socket));
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    connections.asks(socket, response);
    response.on('close', () => connections.rests(socket));
  });
}

/**
 * Limits the connections to a server that only receives. At the limit, the connection that has been silent longest is
 * closed.
 * @param onEnd called for each connection closed to make room
 */
export function boundSenders(server: TcpServer, most: number, onEnd: () => void): void {
  /** Ordered by last activity, most recent last. */
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

/** Connections, keyed by client address and port because a TLS connection and its TCP socket are different objects. */
class IdleConnections {
  readonly #most: number;
  /** Connections without a request, longest idle first. */
  readonly #idle = new Map<string, Socket>();
  /** Connections with a request, oldest request first. */
  readonly #busy = new Map<string, Socket>();
  readonly #responses = new WeakMap<Socket, ServerResponse>();

  constructor(most: number) {
    this.#most = most;
  }

  came(socket: Socket): void {
    const key = keyOf(socket);
    this.#idle.set(key, socket);
    socket.once('close', () => {
      // A client may reconnect from the same port before its old connection is known to be closed.
      for (const known of [this.#idle, this.#busy])
        if (known.get(key) === socket) known.delete(key);
    });
    if (this.#idle.size + this.#busy.size <= this.#most) return;
    const others = this.#idle.size > 1 ? this.#idle : this.#busy;
    const [longest, victim] = this.#unanswered(others) ?? others.entries().next().value!;
    others.delete(longest);
    victim.destroy();
  }

  /** The connection that has waited longest for a reply to begin, or null if all replies have begun. */
  #unanswered(connections: ReadonlyMap<string, Socket>): readonly [string, Socket] | null {
    for (const each of connections)
      if (this.#responses.get(each[1])?.headersSent !== true) return each;
    return null;
  }

  asks(socket: Socket, response: ServerResponse): void {
    this.#responses.set(socket, response);
    move(keyOf(socket), this.#idle, this.#busy);
  }

  rests(socket: Socket): void {
    this.#responses.delete(socket);
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
