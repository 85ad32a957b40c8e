import { builtins } from '../../base/builtins.ts';
import net from 'node:net';
import type { TlsMaterial } from './connection.ts';

/** A connection to the API server that takes bytes out of one buffer of its own, used over and over. */
export interface PooledSocket {
  readonly socket: net.Socket;
  /** Who gets what comes in; `piece` is only lent until the call returns. Returns false to pause. */
  taker: ((piece: Buffer) => boolean) | null;
  /** Has carried a reply before, so the server may have closed it in the meantime. */
  used: boolean;
}

/** Dead peers are noticed by TCP itself after this long without traffic, milliseconds. */
const KEEP_ALIVE_MS = 30_000;
const READ_BYTES = 64 * 1024;
/** More idle connections than lists run side by side are of no use. */
const IDLE_MAX = 4;

/** The connections to one server, kept for the next request when a reply has ended. */
export class Sockets {
  readonly #host: string;
  readonly #port: number;
  #tls: TlsMaterial | null = null;
  readonly #idle: PooledSocket[] = [];

  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  /** An idle connection, or a new one that is still being made; what is written is sent when it stands. */
  take(material: TlsMaterial | null, fresh: boolean): PooledSocket {
    // Other credentials, other connections: the server knows a client certificate by its connection.
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
          // Bytes that nobody asked for end an idle connection.
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
    // Requests have listeners of their own. The end of an idle connection is no failure, but an error without a listener would end the process.
    socket.on('error', () => {});
    socket.on('close', () => {
      const at = this.#idle.indexOf(pooled);
      if (at >= 0) this.#idle.splice(at, 1);
    });
    return pooled;
  }
}
