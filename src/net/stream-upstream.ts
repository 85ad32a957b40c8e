import { builtins } from '../base/builtins.ts';
import { connect as connectTcp, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

import type { Random } from '../base/random.ts';
import type { Query } from '../wire/query.ts';
import { printHostPort } from './address.ts';
import { DialTime } from './dial-time.ts';
import { exchangeError, timeoutError } from './exchange-failure.ts';
import { isReplyTo, takeReply, writeQuery } from './match-reply.ts';
import {
  ExchangeError,
  type ExchangeReply,
  type NetworkCounters,
  type Upstream,
  type UpstreamParts,
} from './network.ts';
import { Timed, type TimerWheel } from './timer-wheel.ts';
import { tlsOptions } from './upstream-tls.ts';

/** Connections to one upstream at a time. */
const MAX_CONNECTIONS = 1024;

export interface StreamUpstreamParts {
  readonly upstream: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly random: Random;
  readonly now: () => number;
  readonly counters: NetworkCounters;
}

/**
 * One upstream over TCP or TLS (RFC 7766, RFC 7858). A connection carries one query at a time and is kept for the next one.
 * A kept connection that the upstream has meanwhile closed costs nothing but a fresh one.
 */
export class StreamUpstream implements Upstream {
  readonly parts: UpstreamParts;
  readonly #parts: StreamUpstreamParts;
  readonly #dialTime = new DialTime();
  /** The most recently used last. */
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  #session: Buffer | null = null;
  #closed = false;

  constructor(parts: StreamUpstreamParts) {
    this.parts = parts.upstream;
    this.#parts = parts;
  }

  async exchange(query: Query, timeoutMs: number): Promise<ExchangeReply> {
    const kept = query.keep();
    const { now, counters } = this.#parts;
    const deadline = now() + timeoutMs;
    counters.exchanges++;
    for (;;) {
      if (this.#closed) throw new ExchangeError('local', `${this.where}: closed`);
      const reused = this.#takeIdle();
      const connection = reused ?? (await this.#dial(deadline));
      try {
        const reply = await connection.ask(kept, Math.max(0, deadline - now()));
        this.#keep(connection);
        return { bytes: reply, truncated: false, reused: reused !== null };
      } catch (error) {
        connection.destroy();
        if (error instanceof ExchangeError && error.failure === 'timeout') counters.timeouts++;
        // Only a connection from the past may turn out to be closed without that being news.
        if (reused === null || !(error instanceof ExchangeError) || error.failure !== 'closed') {
          throw error;
        }
      }
    }
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#all) connection.destroy();
    this.#idle.length = 0;
  }

  get where(): string {
    const { host, port } = this.parts.address;
    return `tcp ${printHostPort(host, port)}`;
  }

  #takeIdle(): Connection | null {
    const { maxAgeMs } = this.parts;
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined) return null;
      this.#parts.wheel.cancel(connection);
      if (maxAgeMs === 0 || this.#parts.now() - connection.bornAt < maxAgeMs) return connection;
      connection.destroy();
    }
  }

  #keep(connection: Connection): void {
    const { maxIdle, expireMs } = this.parts;
    const full = maxIdle > 0 && this.#idle.length >= maxIdle;
    if (this.#closed || full || !connection.usable) return connection.destroy();
    this.#idle.push(connection);
    this.#parts.wheel.set(connection, expireMs);
  }

  async #dial(deadline: number): Promise<Connection> {
    if (this.#all.size >= MAX_CONNECTIONS) {
      throw new ExchangeError('local', `dial ${this.where}: too many connections`);
    }
    const { now, counters, wheel, random, upstream } = this.#parts;
    const began = now();
    const limitMs = Math.max(0, Math.min(this.#dialTime.limitMs, deadline - began));
    const socket = this.#connect(upstream);
    const connection = new Connection({
      socket,
      where: this.where,
      bornAt: began,
      wheel,
      random,
      forget: (gone) => {
        if (this.#all.delete(gone)) counters.connections--;
        const at = this.#idle.indexOf(gone);
        if (at >= 0) this.#idle.splice(at, 1);
      },
    });
    this.#all.add(connection);
    counters.connections++;
    try {
      await connection.connected(upstream.proto === 'tls' ? 'secureConnect' : 'connect', limitMs);
    } catch (error) {
      connection.destroy();
      if (error instanceof ExchangeError && error.failure === 'timeout') counters.timeouts++;
      throw error;
    } finally {
      this.#dialTime.learn(now() - began);
    }
    return connection;
  }

  #connect({ address, source, proto }: UpstreamParts): Socket {
    const local = source === '' ? {} : { localAddress: source };
    const to = { host: address.host, port: address.port, noDelay: true, ...local };
    if (proto !== 'tls') return connectTcp(to);
    const session = this.#session === null ? {} : { session: this.#session };
    const socket: TLSSocket = builtins
      .tls()
      .connect({ ...to, ...tlsOptions(this.parts), ...session });
    socket.on('session', (ticket) => {
      this.#session = ticket;
    });
    return socket;
  }
}

interface ConnectionParts {
  readonly socket: Socket;
  readonly where: string;
  readonly bornAt: number;
  readonly wheel: TimerWheel;
  readonly random: Random;
  readonly forget: (connection: Connection) => void;
}

/** One connection: at rest, or waiting for one thing (being connected, a reply) until a deadline. */
class Connection extends Timed {
  readonly #parts: ConnectionParts;
  #query: Query | null = null;
  #id = 0;
  #resolve: ((reply: Uint8Array | null) => void) | null = null;
  #reject: ((error: ExchangeError) => void) | null = null;
  #action: string;
  #bytes: Buffer | null = null;
  #filled = 0;
  #closed = false;

  constructor(parts: ConnectionParts) {
    super();
    this.#parts = parts;
    this.#action = `dial ${parts.where}`;
    const { socket } = parts;
    socket.on('data', this.#onData);
    socket.on('error', (error) => this.#fail(exchangeError(error, this.#action)));
    socket.on('end', () => this.#fail(new ExchangeError('closed', `${this.#action}: EOF`)));
    socket.on('close', () => {
      this.#fail(new ExchangeError('closed', `${this.#action}: EOF`));
      this.destroy();
    });
  }

  get bornAt(): number {
    return this.#parts.bornAt;
  }

  get usable(): boolean {
    return !this.#closed && this.#parts.socket.writable;
  }

  async connected(event: 'connect' | 'secureConnect', limitMs: number): Promise<void> {
    const { socket, where } = this.#parts;
    socket.once(event, () => this.#done(null));
    await this.#wait(limitMs);
    this.#action = `read ${where}`;
    // At rest a connection does not keep the process alive.
    socket.unref();
  }

  /** Sends the query and waits for its reply; a reply that does not fit is ignored. */
  async ask(query: Query, timeoutMs: number): Promise<Uint8Array<ArrayBuffer>> {
    const { socket, random } = this.#parts;
    this.#query = query;
    this.#id = random.integer(65536);
    const out = Buffer.allocUnsafe(2 + query.end - query.start);
    out.writeUInt16BE(out.length - 2, 0);
    writeQuery(query, this.#id, out, 2);
    socket.ref();
    socket.write(out);
    try {
      const reply = await this.#wait(timeoutMs);
      return takeReply(query, reply!, 0, reply!.length);
    } finally {
      this.#query = null;
      socket.unref();
    }
  }

  destroy(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#parts.wheel.cancel(this);
    this.#parts.socket.destroy();
    this.#fail(new ExchangeError('closed', `${this.#action}: closed`));
    this.#parts.forget(this);
  }

  override expire(): void {
    if (this.#reject === null) this.destroy();
    else this.#fail(timeoutError(this.#action));
  }

  #wait(limitMs: number): Promise<Uint8Array | null> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new ExchangeError('closed', `${this.#action}: closed`));
        return;
      }
      this.#resolve = resolve;
      this.#reject = reject;
      this.#parts.wheel.set(this, limitMs);
    });
  }

  #done(value: Uint8Array | null): void {
    const resolve = this.#resolve;
    this.#resolve = null;
    this.#reject = null;
    this.#parts.wheel.cancel(this);
    resolve?.(value);
  }

  #fail(error: ExchangeError): void {
    const reject = this.#reject;
    this.#resolve = null;
    this.#reject = null;
    if (reject === null) {
      // Nobody waits: a connection at rest that the upstream closed.
      if (!this.#closed) this.destroy();
      return;
    }
    this.#parts.wheel.cancel(this);
    reject(error);
  }

  #onData = (chunk: Buffer): void => {
    let at = 0;
    while (at < chunk.length) {
      // Two length bytes, then the message; its buffer is made once the length is known.
      if (this.#filled < 2) {
        this.#bytes ??= Buffer.allocUnsafe(2);
        this.#bytes[this.#filled++] = chunk[at++]!;
        if (this.#filled < 2) continue;
        const whole = Buffer.allocUnsafeSlow(2 + this.#bytes.readUInt16BE(0));
        this.#bytes.copy(whole, 0, 0, 2);
        this.#bytes = whole;
      }
      const bytes = this.#bytes!;
      const take = Math.min(bytes.length - this.#filled, chunk.length - at);
      chunk.copy(bytes, this.#filled, at, at + take);
      this.#filled += take;
      at += take;
      if (this.#filled < bytes.length) return;
      this.#bytes = null;
      this.#filled = 0;
      const query = this.#query;
      if (query !== null && isReplyTo(query, this.#id, bytes, 2, bytes.length)) {
        this.#done(bytes.subarray(2));
      }
    }
  };
}
