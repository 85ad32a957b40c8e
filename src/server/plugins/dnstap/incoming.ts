/** The listener that sinks connect to. */
import { unlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { whyFailed } from '../../base/why-failed.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { builtins } from '../../base/builtins.ts';
import type { ServerCertificate } from '../../engine/contract/server-certificate.ts';
import type { Log } from '../../base/log.ts';
import { HandshakeBound } from '../../transport/stream/handshake-bound.ts';
import { Delivery } from './delivery.ts';
import type { DnstapEndpoint } from './dnstap-options.ts';
import { FrameStream, HANDSHAKE_MS } from './stream.ts';

/** Maximum number of concurrent sinks, and of handshakes. */
const SINKS_MAX = 64;
/** Minimum time between two reports about closed connections, in milliseconds. */
const TELL_MS = 10_000;
/** Wait in milliseconds before the next attempt if the address is in use. */
const AGAIN_MS = 1000;

/** Accepts sinks and sends every message to each of them. A sink that cannot keep up is disconnected. */
export class Incoming extends Delivery {
  /** Number of sinks disconnected because too many were connected. */
  evicted = 0;
  #tls: ServerCertificate | null;
  readonly #skipVerify: boolean;
  readonly #sinks = new Set<FrameStream>();
  #server: Server | null = null;
  #shaking: HandshakeBound | null = null;
  #again: Timer | null = null;
  #toldAt = -Infinity;

  constructor(
    endpoint: DnstapEndpoint,
    tls: ServerCertificate | null,
    skipVerify: boolean,
    clock: Clock,
    log: Log,
  ) {
    super(endpoint, clock, log);
    this.#tls = tls;
    this.#skipVerify = skipVerify;
  }

  get connections(): number {
    return this.#sinks.size;
  }

  protected open(): void {
    this.#listen();
  }

  protected async end(): Promise<void> {
    this.#again?.cancel();
    this.#shaking?.cut();
    this.#server?.close();
    await Promise.all([...this.#sinks].map((sink) => sink.close()));
  }

  #listen(): void {
    const { kind, path, host, port } = this.endpoint;
    const server = this.#tls === null ? createServer() : this.#secureServer(this.#tls);
    this.#server = server;
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (this.state !== 'running') return;
      if (!this.failing)
        this.log.error(
          `Failed to start dnstap listener: listen ${this.endpoint.text}: ${whyFailed(error)}`,
        );
      this.failing = true;
      // After a reload, the previous listener may still be using the address. A crashed process also leaves its file
      // behind.
      if (kind === 'unix' && error.code === 'EADDRINUSE') removeStale(path);
      this.#again = this.clock.after(AGAIN_MS, () => this.#listen());
    });
    server.on(this.#tls === null ? 'connection' : 'secureConnection', (socket: Socket) => {
      this.#greet(socket);
    });
    server.unref();
    const said = (): void => {
      if (this.failing) this.log.info(`dnstap listener started: ${this.endpoint.text}`);
      this.failing = false;
    };
    if (kind === 'unix') server.listen({ path }, said);
    else server.listen({ port, ...(host !== '' && { host }) }, said);
  }

  /** Sets the certificate for new connections after a reload has read the files again. */
  renew(tls: ServerCertificate | null): void {
    this.#tls = tls;
    if (tls !== null && this.#server instanceof builtins.tls().Server)
      this.#server.setSecureContext(contextOf(tls));
  }

  #secureServer(tls: ServerCertificate): Server {
    const server = builtins.tls().createServer({
      ...contextOf(tls),
      ...(tls.ca !== null && { requestCert: true, rejectUnauthorized: !this.#skipVerify }),
      handshakeTimeout: HANDSHAKE_MS,
    });
    this.#shaking = new HandshakeBound(server, SINKS_MAX, () =>
      this.log.debug('dnstap client: too many handshakes at once'),
    );
    return server;
  }

  #greet(socket: Socket): void {
    socket.unref();
    if (this.#sinks.size >= SINKS_MAX) this.#evict();
    const sink: FrameStream = new FrameStream(socket, Infinity, this.clock, {
      ready: () => undefined,
      drained: () => undefined,
      ended: (error) => {
        this.#sinks.delete(sink);
        this.cut += sink.underway;
        if (error !== null) this.log.debug(`dnstap client: ${error.message}`);
      },
    });
    this.#sinks.add(sink);
  }

  /**
   * At the limit, closes the connection that has waited longest without a handshake, so that silent connections do not
   * displace others. If there is none, closes the oldest connection.
   */
  #evict(): void {
    const sinks = [...this.#sinks];
    const silent = sinks.find(({ open }) => !open) ?? sinks[0];
    this.evicted++;
    silent?.destroy(new Error(`more than ${SINKS_MAX} clients`));
    const now = this.clock.now();
    if (now - this.#toldAt < TELL_MS) return;
    this.#toldAt = now;
    this.log.warning(`more than ${SINKS_MAX} dnstap clients: disconnecting the longest-idle one`);
  }

  /** Sends queued data to all connected collectors, or drops it if there are none. */
  protected deliver(): void {
    const most = this.endpoint.writeBuffer * 1024 * 1024;
    for (let chunk = this.frames.take(); chunk !== null; chunk = this.frames.take()) {
      for (const sink of this.#sinks) {
        if (!sink.open) continue;
        if (sink.backlog >= most) {
          this.log.warning('a dnstap client cannot keep up; closing its connection');
          sink.destroy(new Error('it does not keep up'));
          continue;
        }
        this.written += chunk.frames;
        sink.write(chunk);
      }
      chunk.release();
    }
  }
}

function contextOf({ cert, key, ca }: ServerCertificate): SecureContextOptions {
  return { cert, key, ...(ca !== null && { ca }) };
}

function removeStale(path: string): void {
  const probe = connect({ path });
  probe.once('connect', () => probe.destroy());
  probe.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ECONNREFUSED') return;
    try {
      unlinkSync(path);
    } catch {
      // Another process has already removed it.
    }
  });
}
