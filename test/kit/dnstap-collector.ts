/** A collector of dnstap messages. */
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, Server as TlsServer } from 'node:tls';
import { DNSTAP_CONTENT_TYPE, readDnstap, type Dnstap } from '../../src/server/wire/dnstap.ts';
import {
  CONTROL,
  FrameReader,
  writeControl,
  type ControlFrame,
} from '../../src/server/wire/frame-stream.ts';

/** Reads dnstap messages from a Frame Streams socket, with the handshake in both directions. */
export class DnstapReader {
  readonly messages: Dnstap[] = [];
  /** The types of the control frames so far. */
  readonly controls: number[] = [];
  readonly #frames = new FrameReader(1 << 20);

  constructor(socket: Socket) {
    const control = (frame: ControlFrame): void => {
      this.controls.push(frame.type);
      if (frame.type === CONTROL.READY)
        socket.write(writeControl(CONTROL.ACCEPT, [DNSTAP_CONTENT_TYPE]));
      if (frame.type === CONTROL.STOP) socket.end(writeControl(CONTROL.FINISH));
    };
    socket.on('error', () => undefined);
    socket.on('data', (bytes: Buffer) => {
      this.#frames.push(bytes);
      for (let frame = this.#frames.next(); frame !== null; frame = this.#frames.next()) {
        if (frame instanceof Uint8Array) this.messages.push(readDnstap(Uint8Array.from(frame)));
        else control(frame);
      }
    });
  }
}

/** Listens on a path or on a port of 127.0.0.1 and collects messages. */
export class DnstapCollector {
  readonly sockets: Socket[] = [];
  readonly readers: DnstapReader[] = [];
  readonly #server: Server;

  private constructor(server: Server, reads: boolean) {
    this.#server = server;
    server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.sockets.push(socket);
      if (reads) this.readers.push(new DnstapReader(socket));
      else socket.on('error', () => undefined);
    });
  }

  /** @param reads false if connections are only accepted, and nothing is read or sent */
  static async listen(
    at: { path: string } | { port: number } | { tls: { cert: string; key: string } },
    reads = true,
  ): Promise<DnstapCollector> {
    const server = 'tls' in at ? createTlsServer(at.tls) : createServer();
    server.on('tlsClientError', () => undefined);
    const collector = new DnstapCollector(server, reads);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      const port = 'port' in at ? at.port : 0;
      server.listen('path' in at ? at : { port, host: '127.0.0.1' }, resolve);
    });
    return collector;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  /** The messages from all connections. */
  get messages(): Dnstap[] {
    return this.readers.flatMap(({ messages }) => messages);
  }

  /** Closes the address and all connections immediately. */
  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export async function until(met: () => boolean, what: string, limitMs = 20_000): Promise<void> {
  for (const end = performance.now() + limitMs; !met();) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
