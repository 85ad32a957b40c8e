import { builtins } from '../../base/builtins.ts';
import net from 'node:net';
import type { TlsMaterial } from './connection.ts';

/** A connection to the API server that reads into a buffer of its own, which is reused. */
export interface PooledSocket {
  readonly socket: net.Socket;
  /** Receives the input; `piece` is valid only during the call. Returns false to pause. */
  taker: ((piece: Buffer) => boolean) | null;
  /**
   * Whether it has carried a reply before, so that the server may have closed it in the meantime.
   */
  used: boolean;
}

/** After this long without traffic, TCP checks whether the peer is alive, in milliseconds. */
const KEEP_ALIVE_MS = 30_000;
const READ_BYTES = 64 * 1024;
/** The most idle connections; more than lists run in parallel are of no use. */
const IDLE_MAX = 4;

/** The connections to one server, kept for the next request after a reply. */
export class Sockets {
  readonly #host: string;
  readonly #port: number;
  #tls: TlsMaterial | null = null;
  readonly #idle: PooledSocket[] = [];

  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  /**
   * An idle connection, or a new one that is still being established; what is written is sent when
   * it is.
   */
  take(material: TlsMaterial | null, fresh: boolean): PooledSocket {
    // The server identifies a client certificate by the connection, so other credentials need other
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
    const options = {
      host: this.#host,
      port: this.#port,
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
      material === null
        ? net.connect(options)
        : builtins.tls().connect({ ...options, ...material, ALPNProtocols: ['http/1.1'] });
    const pooled: PooledSocket = { socket, taker: null, used: false };
    // Requests add listeners of their own. An idle connection may end without harm, but an error
    // without any listener would end the process.
    socket.on('error', () => {});
    socket.on('close', () => {
      const at = this.#idle.indexOf(pooled);
      if (at >= 0) this.#idle.splice(at, 1);
    });
    return pooled;
  }
}
