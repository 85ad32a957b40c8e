import { builtins } from '../../base/builtins.ts';
import net from 'node:net';
import type { Clock } from '../../base/clock.ts';
import type { TlsMaterial } from './connection.ts';

/** A connection to the API server that reads into a reusable buffer of its own. */
export interface PooledSocket {
  readonly socket: net.Socket;
  /** Receives the input; `piece` is valid only during the call. Returns false to pause. */
  taker: ((piece: Buffer) => boolean) | null;
  /**
   * True if the connection has already carried a reply, in which case the server may have closed it in the meantime.
   */
  used: boolean;
  /** True once the TCP connection is established. From then on, the server may have seen the request. */
  established: boolean;
}

/** Milliseconds without traffic after which TCP checks whether the peer is alive. */
const KEEP_ALIVE_MS = 30_000;
const READ_BYTES = 64 * 1024;
/** Maximum number of idle connections. Having more than there are parallel lists is useless. */
const IDLE_MAX = 4;

/**
 * Timeout for connecting to one of several addresses, in milliseconds. It is needed because packets to a dead server
 * are dropped.
 */
const CONNECT_MS = 1500;
/** Milliseconds at a different address after which the first one is tried again. */
const RETURN_MS = 10 * 60_000;

/** A server's TCP address. */
export interface SocketAddress {
  readonly host: string;
  readonly port: number;
}

/** A server's addresses, and the clock that determines when to return to the first one. */
export interface SocketsParts {
  readonly address: SocketAddress;
  /** Additional addresses of the server, tried in turn after a failed connection. */
  readonly others: () => readonly SocketAddress[];
  readonly clock: Clock;
}

/** The connections to one server, which stay open after a reply for the next request. */
export class Sockets {
  readonly #parts: SocketsParts;
  #tls: TlsMaterial | null = null;
  readonly #idle: PooledSocket[] = [];
  /** The address in use, counted from the first one. Increases with each failure. */
  #turn = 0;
  #leftAt = 0;

  constructor(parts: SocketsParts) {
    this.#parts = parts;
  }

  /** Returns an idle connection, or a new one that is still connecting. In the second case, writes wait. */
  take(material: TlsMaterial | null, fresh: boolean): PooledSocket {
    // The server identifies a client certificate by its connection, so different credentials need different
    // connections.
    if (material !== this.#tls) this.close();
    this.#tls = material;
    if (!fresh) {
      for (let pooled = this.#idle.pop(); pooled !== undefined; pooled = this.#idle.pop()) {
        if (!pooled.socket.destroyed) return pooled;
      }
    }
    return this.#connect(material);
  }

  give(pooled: PooledSocket, material: TlsMaterial | null): void {
    pooled.taker = null;
    pooled.used = true;
    if (material !== this.#tls || this.#idle.length >= IDLE_MAX) {
      pooled.socket.destroy();
      return;
    }
    pooled.socket.unref();
    this.#idle.push(pooled);
  }

  close(): void {
    for (const pooled of this.#idle.splice(0)) pooled.socket.destroy();
  }

  #connect(material: TlsMaterial | null): PooledSocket {
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    const { address, others, clock } = this.#parts;
    if (clock.now() - this.#leftAt > RETURN_MS) this.#turn = 0;
    const turn = this.#turn;
    const addresses = [address, ...others()];
    const options = {
      ...addresses[turn % addresses.length]!,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      noDelay: true,
      onread: {
        buffer,
        callback: (length: number): boolean =>
          // Unrequested bytes end an idle connection.
          pooled.taker === null
            ? !pooled.socket.destroy()
            : pooled.taker(buffer.subarray(0, length)),
      },
    };
    const socket =
      material === null ? net.connect(options) : this.#connectTls({ ...options, ...material });
    const pooled: PooledSocket = { socket, taker: null, used: false, established: false };
    const leave = (): void => {
      // Requests that fail together all try the same next address.
      if (pooled.established || turn !== this.#turn) return;
      if (turn === 0) this.#leftAt = clock.now();
      this.#turn++;
    };
    const late = (): void => void socket.destroy(new Error('no connection in time'));
    const limit = addresses.length > 1 ? clock.after(CONNECT_MS, late) : null;
    socket.once('connect', () => {
      pooled.established = true;
      limit?.cancel();
    });
    // Add this before the request's own listener, which tries the next address at once. An idle connection may end
    // without harm, but an error without any listener would end the process.
    socket.on('error', leave);
    socket.on('close', () => {
      leave();
      limit?.cancel();
      const at = this.#idle.indexOf(pooled);
      if (at >= 0) this.#idle.splice(at, 1);
    });
    return pooled;
  }

  /** Number of addresses that a request may try. */
  get addresses(): number {
    return 1 + this.#parts.others().length;
  }

  /** The certificate contains the server's first address, regardless of which one is used. */
  #connectTls(options: net.TcpNetConnectOpts & TlsMaterial): net.Socket {
    const tls = builtins.tls();
    const name = options.servername ?? this.#parts.address.host;
    return tls.connect({
      ...options,
      ALPNProtocols: ['http/1.1'],
      checkServerIdentity: (_, certificate) => tls.checkServerIdentity(name, certificate),
    });
  }
}
