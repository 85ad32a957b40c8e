/** A single TCP or TLS connection to an upstream. */
import { printHostPort } from '../../base/ip.ts';
import { releaseBytes } from '../../runtime/release-bytes.ts';
import type { Socket } from 'node:net';

import type { Random } from '../../base/random.ts';
import { hearing } from '../../runtime/tcp-state.ts';
import { endError, exchangeError, timeoutError } from '../upstream/exchange-failure.ts';
import {
  type Carrier,
  type UpstreamExchange,
  ExchangeError,
} from '../upstream/upstream-exchange.ts';
import { matchReply } from '../upstream/match-reply.ts';
import { sizeUpstream, writeQuery } from '../upstream/write-query.ts';
import { type UpstreamParts } from '../upstream-address.ts';
import { Timed, type TimerWheel } from '../timer-wheel.ts';

/** Maximum number of concurrent queries per connection. */
const PIPELINE = 16;
/**
 * Milliseconds between a query on a reused connection and a check that the peer's kernel still acknowledges data. An
 * acknowledgement takes at most 40 ms, and a query on a dead connection should be retried within 100.
 */
const HEARS_MS = 60;
/**
 * Number of consecutive replies without a matching query above which they cannot all be late, so the peer must be
 * making them up.
 */
const STRAYS_MAX = 64;

export interface StreamLinkHost {
  readonly parts: UpstreamParts;
  /** `10.0.0.1:853`. */
  readonly remote: string;
  readonly wheel: TimerWheel;
  readonly random: Random;
  readonly now: () => number;
  dialled(tookMs: number): void;
  keeps(link: StreamLink): boolean;
  /** @param left the exchanges that were waiting on the connection, with their deadlines still set */
  gone(link: StreamLink, left: readonly UpstreamExchange[], error: ExchangeError): void;
}

/**
 * One connection to an upstream. All queries from one turn are sent in a single write, and replies arrive in any order.
 * As a `Timed`, its deadline first limits connecting and later the time spent idle.
 */
export class StreamLink extends Timed implements Carrier {
  /** Number of queries waiting for their replies. */
  waiting = 0;
  answered = 0;
  readonly #host: StreamLinkHost;
  readonly #socket: Socket;
  readonly #bornAt: number;
  #first: UpstreamExchange | null = null;
  #connected = false;
  /** Set after a timeout. The link then accepts no more queries, and is closed when the last one has ended. */
  #stuck = false;
  #closed = false;
  /** Queries to be written at the end of the turn, or once the connection is established. */
  #unsent: UpstreamExchange[] = [];
  #local = '';
  /** True while a check is pending that the peer still acknowledges data. */
  #listening = false;
  /** Number of unmatched replies since the last one that matched. */
  #strays = 0;
  #part: Buffer | null = null;
  #filled = 0;
  /** True if the memory of received chunks holds only this connection's bytes. */
  readonly #alone: boolean;

  constructor(host: StreamLinkHost, socket: Socket, now: number, dialMs: number) {
    super();
    this.#host = host;
    this.#socket = socket;
    this.#bornAt = now;
    this.#alone = host.parts.proto !== 'tls';
    host.wheel.set(this, dialMs, now);
    socket.once(host.parts.proto === 'tls' ? 'secureConnect' : 'connect', this.#onConnected);
    socket.on('data', this.#onData);
    socket.on('error', (error) => {
      this.destroy(
        this.#connected
          ? exchangeError(error, 'read', this.#where)
          : exchangeError(error, 'dial', `tcp ${host.remote}`),
      );
    });
    socket.on('end', () => this.destroy(endError()));
    socket.on('close', () => this.destroy(endError()));
  }

  takes(now: number): boolean {
    const { maxAgeMs } = this.#host.parts;
    if (this.#closed || this.#stuck || this.waiting >= PIPELINE) return false;
    return maxAgeMs === 0 || now - this.#bornAt < maxAgeMs;
  }

  /** Sends the exchange's query. The caller has already set its deadline. */
  send(exchange: UpstreamExchange): void {
    const { wheel, random } = this.#host;
    let id = random.integer(65536);
    while (this.#find(id) !== null) id = random.integer(65536);
    exchange.id = id;
    exchange.carrier = this;
    exchange.reused = this.answered > 0;
    exchange.next = this.#first;
    this.#first = exchange;
    if (this.waiting++ === 0 && this.#connected) {
      wheel.cancel(this);
      this.#socket.ref();
    }
    if (this.#connected && this.answered > 0) this.#listen();
    if (this.#unsent.push(exchange) === 1 && this.#connected) process.nextTick(this.#flush);
  }

  timeOut(exchange: UpstreamExchange): void {
    const { parts, now, remote } = this.#host;
    const error = this.#connected
      ? timeoutError('read', this.#where)
      : timeoutError('dial', `tcp ${remote}`);
    parts.counters.timeouts.add(1);
    this.#stuck = this.#connected;
    this.#remove(exchange);
    exchange.failed(error, now());
  }

  override expire(): void {
    if (this.#connected && this.waiting > 0) return this.#look();
    if (this.#connected) return this.destroy(endError());
    const { parts, remote, now, dialled } = this.#host;
    parts.counters.timeouts.add(1);
    dialled.call(this.#host, now() - this.#bornAt);
    this.destroy(timeoutError('dial', `tcp ${remote}`));
  }

  #listen(): void {
    if (this.#listening) return;
    this.#listening = true;
    this.#host.wheel.set(this, HEARS_MS);
  }

  /**
   * Treats a connection as closed if its peer no longer acknowledges data, so that its exchanges are retried on a new
   * one.
   */
  #look(): void {
    this.#listening = false;
    const state = hearing(this.#socket, HEARS_MS);
    if (state === 'deaf') this.destroy(endError());
    else if (state === 'waiting') this.#listen();
  }

  destroy(error: ExchangeError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#host.wheel.cancel(this);
    this.#socket.destroy();
    const left: UpstreamExchange[] = [];
    for (let exchange = this.#first; exchange !== null;) {
      const { next }: UpstreamExchange = exchange;
      exchange.next = null;
      exchange.carrier = null;
      left.push(exchange);
      exchange = next;
    }
    this.#first = null;
    this.waiting = 0;
    this.#unsent = [];
    this.#host.gone(this, left.toReversed(), error);
  }

  get #where(): string {
    return `tcp ${this.#local}->${this.#host.remote}`;
  }

  #onConnected = (): void => {
    const { wheel, now, parts } = this.#host;
    const { localAddress = '', localPort = 0 } = this.#socket;
    this.#local = printHostPort(localAddress, localPort);
    this.#connected = true;
    this.#host.dialled(now() - this.#bornAt);
    wheel.cancel(this);
    if (this.waiting === 0) {
      // An idle connection does not keep the process alive.
      this.#socket.unref();
      wheel.set(this, parts.expireMs);
    }
    this.#flush();
  };

  #flush = (): void => {
    const unsent = this.#unsent;
    if (unsent.length === 0 || this.#closed) return;
    this.#unsent = [];
    let size = 0;
    for (const { query } of unsent) size += 2 + sizeUpstream(query);
    const out = Buffer.allocUnsafe(size);
    let at = 0;
    for (const { query, id } of unsent) {
      const length = writeQuery(query, id, out, at + 2);
      out[at] = length >> 8;
      out[at + 1] = length & 0xff;
      at += 2 + length;
    }
    this.#socket.write(out);
  };

  #onData = (chunk: Buffer): void => {
    let at = 0;
    while (at < chunk.length && !this.#closed) {
      if (this.#part === null && at + 2 <= chunk.length) {
        const end = at + 2 + ((chunk[at]! << 8) | chunk[at + 1]!);
        if (end <= chunk.length) {
          this.#onMessage(chunk, at + 2, end);
          at = end;
          continue;
        }
      }
      at = this.#collect(chunk, at);
    }
    // Chunks decrypted by TLS share memory with those of other connections.
    if (this.#alone) releaseBytes(chunk);
  };

  /**
   * Collects a reply that arrives in pieces: two length bytes, then the message.
   * @returns the start of the next reply
   */
  #collect(chunk: Buffer, at: number): number {
    this.#part ??= Buffer.allocUnsafe(2);
    if (this.#filled < 2) {
      this.#part[this.#filled++] = chunk[at++]!;
      if (this.#filled < 2) return at;
      const whole = Buffer.allocUnsafeSlow(2 + this.#part.readUInt16BE(0));
      this.#part.copy(whole, 0, 0, 2);
      this.#part = whole;
    }
    const part = this.#part;
    const take = Math.min(part.length - this.#filled, chunk.length - at);
    chunk.copy(part, this.#filled, at, at + take);
    this.#filled += take;
    if (this.#filled === part.length) {
      this.#part = null;
      this.#filled = 0;
      this.#onMessage(part, 2, part.length);
      releaseBytes(part);
    }
    return at + take;
  }

  #onMessage(bytes: Buffer, start: number, end: number): void {
    const { parts, now, wheel } = this.#host;
    const id = end - start >= 2 ? (bytes[start]! << 8) | bytes[start + 1]! : -1;
    const exchange = this.#find(id);
    const match = exchange === null ? 'stray' : matchReply(exchange.query, id, bytes, start, end);
    if (exchange === null || match === 'stray') {
      parts.counters.strays.add(1);
      if (++this.#strays > STRAYS_MAX) {
        const text = `read ${this.#where}: replies that match no query`;
        this.destroy(new ExchangeError('garbled', text));
      }
      return;
    }
    wheel.cancel(exchange);
    this.#strays = 0;
    this.answered++;
    this.#remove(exchange);
    if (match === 'garbled') {
      const text = `read ${this.#where}: the question of the reply cannot be read`;
      return exchange.failed(new ExchangeError('garbled', text), now());
    }
    exchange.replied(bytes, start, end, false, exchange.reused, now());
  }

  #find(id: number): UpstreamExchange | null {
    let exchange = this.#first;
    while (exchange !== null && exchange.id !== id) exchange = exchange.next;
    return exchange;
  }

  /** The exchange is no longer waiting here. */
  #remove(exchange: UpstreamExchange): void {
    if (this.#first === exchange) this.#first = exchange.next;
    else {
      let before = this.#first!;
      while (before.next !== exchange) before = before.next!;
      before.next = exchange.next;
    }
    exchange.next = null;
    exchange.carrier = null;
    const unsent = this.#unsent.indexOf(exchange);
    if (unsent >= 0) this.#unsent.splice(unsent, 1);
    if (--this.waiting > 0 || !this.#connected) return;
    if (this.#stuck || !this.#host.keeps(this)) return this.destroy(endError());
    this.#socket.unref();
    this.#listening = false;
    this.#host.wheel.set(this, this.#host.parts.expireMs);
  }
}
