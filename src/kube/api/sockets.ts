import { builtins } from '../../base/builtins.ts';
import net from 'node:net';
import type { TlsMaterial } from './connection.ts';

/** A connection to the API server that takes bytes out of one buffer of its own, used over and over. */
export interface Wire {
  readonly socket: net.Socket;
  /** Who gets what comes in; `piece` is only lent until the call returns. Returns false to pause. */
  taker: ((piece: Buffer) => boolean) | null;
  /** Has carried a reply before, so the server may have closed it in the meantime. */
  used: boolean;
}

/** Dead peers are noticed by TCP itself after this long without traffic, milliseconds. */
const keepAliveMs = 30_000;
const readBytes = 64 * 1024;
/** More idle connections than lists run side by side are of no use. */
const mostIdle = 4;

/** The connections to one server, kept for the next request when a reply has ended. */
export class Sockets {
  readonly #host: string;
  readonly #port: number;
  #tls: TlsMaterial | null = null;
  readonly #idle: Wire[] = [];

  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  /** An idle connection, or a new one that is still being made; what is written is sent when it stands. */
  take(material: TlsMaterial | null, fresh: boolean): Wire {
    // Other credentials, other connections: the server knows a client certificate by its connection.
    if (material !== this.#tls) this.close();
    this.#tls = material;
    if (!fresh) {
      for (let wire = this.#idle.pop(); wire !== undefined; wire = this.#idle.pop()) {
        if (!wire.socket.destroyed) return wire;
      }
    }
    return this.#connect(material);
  }

  give(wire: Wire, material: TlsMaterial | null): void {
    wire.taker = null;
    wire.used = true;
    if (material !== this.#tls || this.#idle.length >= mostIdle) {
      wire.socket.destroy();
      return;
    }
    wire.socket.unref();
    this.#idle.push(wire);
  }

  close(): void {
    for (const wire of this.#idle.splice(0)) wire.socket.destroy();
  }

  #connect(material: TlsMaterial | null): Wire {
    const buffer = Buffer.allocUnsafeSlow(readBytes);
    const options = {
      host: this.#host,
      port: this.#port,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveMs,
      noDelay: true,
      onread: {
        buffer,
        callback: (length: number): boolean =>
          // Bytes that nobody asked for end an idle connection.
          wire.taker === null ? !wire.socket.destroy() : wire.taker(buffer.subarray(0, length)),
      },
    };
    const socket =
      material === null
        ? net.connect(options)
        : builtins.tls().connect({ ...options, ...material, ALPNProtocols: ['http/1.1'] });
    const wire: Wire = { socket, taker: null, used: false };
    // Whoever uses the connection listens too; while idle its end is nobody's trouble.
    socket.on('error', () => {});
    socket.on('close', () => {
      const at = this.#idle.indexOf(wire);
      if (at >= 0) this.#idle.splice(at, 1);
    });
    return wire;
  }
}
