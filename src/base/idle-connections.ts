/** Connections up to a limit: at it the one goes that has been idle longest, never the newcomer, who may be the API server. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Server as TcpServer, Socket } from 'node:net';

/** Bounds the connections of an HTTP server that shares nothing with others: one that is answering a request goes last. */
export function boundConnections(server: Server | TlsServer, most: number): void {
  const connections = new IdleConnections(most);
  server.on('connection', (socket: Socket) => connections.came(socket));
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    connections.asks(socket);
    response.on('close', () => connections.rests(socket));
  });
}

/**
 * Bounds the connections of a server that only listens to its clients: at the limit the one goes that has been silent longest.
 * @param onEnd told each time one had to go
 */
export function boundSenders(server: TcpServer, most: number, onEnd: () => void): void {
  /** Whoever was heard last is the last. */
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

/** Sockets by the client's address and port, since TLS has another object than the socket below. */
class IdleConnections {
  readonly #most: number;
  /** Those without a request, the one that has been idle longest first. */
  readonly #idle = new Map<string, Socket>();
  /** Those with one, the one that came first first. */
  readonly #busy = new Map<string, Socket>();

  constructor(most: number) {
    this.#most = most;
  }

  /** A connection was accepted. */
  came(socket: Socket): void {
    const key = keyOf(socket);
    this.#idle.set(key, socket);
    socket.once('close', () => {
      // A client that comes back from the same port may be there before this one is known to have gone.
      for (const known of [this.#idle, this.#busy])
        if (known.get(key) === socket) known.delete(key);
    });
    if (this.#idle.size + this.#busy.size <= this.#most) return;
    // Where all others are busy, the one goes that has been so for longest.
    const others = this.#idle.size > 1 ? this.#idle : this.#busy;
    const [[longest, victim] = [key, socket]] = others;
    others.delete(longest);
    victim.destroy();
  }

  /** A request came over it. */
  asks(socket: Socket): void {
    move(keyOf(socket), this.#idle, this.#busy);
  }

  /** Its request is answered. */
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
