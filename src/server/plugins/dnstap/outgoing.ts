/** The connection to a collector. */
import { connect, type Socket } from 'node:net';
import { isIP } from '../../base/ip.ts';
import { whyFailed } from '../../base/why-failed.ts';
import { Backoff } from '../../base/backoff.ts';
import { every, type Clock, type Timer } from '../../base/clock.ts';
import { builtins } from '../../base/builtins.ts';
import type { Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import { Delivery } from './delivery.ts';
import type { DnstapEndpoint } from './dnstap-options.ts';
import { FrameStream, HANDSHAKE_MS } from './stream.ts';

/** Initial and maximum wait before reconnecting, because all nodes in a cluster may use the same collector. */
const BACKOFF = { firstMs: 100, mostMs: 10_000 };
/** Minimum time between two reports about lost frames, in milliseconds. */
const TELL_MS = 10_000;

/** A connection to a collector, which is re-established whenever it ends. Until then, frames wait in the rings. */
export class Outgoing extends Delivery {
  readonly #skipVerify: boolean;
  readonly #backoff: Backoff;
  #stream: FrameStream | null = null;
  #socket: Socket | null = null;
  #telling: Timer | null = null;
  #retry: Timer | null = null;
  #told = 0;

  constructor(
    endpoint: DnstapEndpoint,
    skipVerify: boolean,
    clock: Clock,
    random: Random,
    log: Log,
  ) {
    super(endpoint, clock, log);
    this.#skipVerify = skipVerify;
    this.#backoff = new Backoff(clock, random, BACKOFF);
  }

  get connections(): number {
    return this.#stream?.open === true ? 1 : 0;
  }

  protected open(): void {
    this.#telling = every(this.clock, TELL_MS, () => this.#tell());
    this.#connect();
  }

  protected async end(): Promise<void> {
    this.#telling?.cancel();
    this.#retry?.cancel();
    if (this.#stream === null) this.#socket?.destroy();
    await this.#stream?.close();
    this.#tell();
  }

  #connect(): void {
    const socket = this.#dial();
    this.#socket = socket;
    const late = this.clock.after(HANDSHAKE_MS, () => socket.destroy(new Error('i/o timeout')));
    const failed = (error: Error): void => {
      late.cancel();
      this.#again(error);
    };
    socket.unref();
    socket.once('error', failed);
    socket.once(this.endpoint.kind === 'tls' ? 'secureConnect' : 'connect', () => {
      late.cancel();
      socket.off('error', failed);
      const most = this.endpoint.writeBuffer * 1024 * 1024;
      const stream: FrameStream = new FrameStream(socket, most, this.clock, {
        ready: () => {
          this.#backoff.succeed();
          if (this.failing)
            this.log.info(`Connected to dnstap endpoint ${this.endpoint.text} again`);
          this.failing = false;
          this.deliver();
        },
        drained: () => this.deliver(),
        ended: (error) => {
          this.cut += stream.underway;
          this.#stream = null;
          if (this.state === 'running') this.#again(error ?? new Error('the reader left'));
        },
      });
      this.#stream = stream;
    });
  }

  #dial(): Socket {
    const { kind, path, host, port } = this.endpoint;
    if (kind === 'unix') return connect({ path });
    if (kind === 'tcp') return connect({ host, port });
    const tls = builtins.tls();
    return tls.connect({
      host,
      port,
      ca: [...tls.getCACertificates('default'), ...tls.getCACertificates('system')],
      rejectUnauthorized: !this.#skipVerify,
      ...(isIP(host) === 0 && { servername: host }),
    });
  }

  #again(error: Error): void {
    if (this.state !== 'running') return;
    if (!this.failing) this.log.error(`No connection to dnstap endpoint: ${whyFailed(error)}`);
    this.failing = true;
    this.#retry = this.clock.after(this.#backoff.fail(), () => {
      if (this.state === 'running') this.#connect();
    });
  }

  protected deliver(): void {
    const stream = this.#stream;
    const most = this.endpoint.writeBuffer * 1024 * 1024;
    while (stream !== null && stream.open && stream.backlog < most) {
      const chunk = this.frames.take();
      if (chunk === null) return;
      this.written += chunk.frames;
      stream.write(chunk);
      chunk.release();
    }
  }

  #tell(): void {
    const dropped = this.lost - this.#told;
    if (dropped <= 0) return;
    this.#told += dropped;
    this.log.warning(`Dropped dnstap messages: ${dropped}`);
  }
}
