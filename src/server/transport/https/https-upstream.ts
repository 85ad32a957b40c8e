/** Upstreams over HTTPS. */
import { printHostPort } from '../../base/ip.ts';
import type { TLSSocket } from 'node:tls';

import { builtins } from '../../base/builtins.ts';
import { DialTime } from '../upstream/dial-time.ts';
import { Dialling } from '../upstream/dialling.ts';
import { endError, exchangeError, failLater, timeoutError } from '../upstream/exchange-failure.ts';
import {
  ExchangeError,
  type Carrier,
  type UpstreamExchange,
} from '../upstream/upstream-exchange.ts';
import { Http1Requests } from './http1-requests.ts';
import { Http2Link, type Http2Host } from '../http2/http2-link.ts';
import type { Upstream, UpstreamParts } from '../upstream-address.ts';
import type { TimerWheel } from '../timer-wheel.ts';
import { tlsOptions } from '../upstream/upstream-tls.ts';

const PATH = '/dns-query';

export interface HttpsUpstreamParts {
  readonly upstream: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly now: () => number;
}

/**
 * An HTTPS upstream (RFC 8484). It uses a single HTTP/2 connection for all queries, or HTTP/1.1 connections if the
 * server prefers that. Queries are sent with id 0 so that HTTP caches can work.
 */
export class HttpsUpstream implements Upstream, Http2Host, Carrier {
  readonly parts: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly now: () => number;
  readonly authority: string;
  readonly path: '/dns-query' = PATH;
  readonly action: string;
  readonly #dialTime = new DialTime();
  #link: Http2Link | null = null;
  #linkBornAt = 0;
  /** The connection attempt in progress, and the exchanges waiting for it. */
  #dialling: Dialling | null = null;
  #waiting: UpstreamExchange[] = [];
  /** Set once the server has chosen HTTP/1.1. */
  #http1: Http1Requests | null = null;
  #session: Buffer | null = null;
  #closed = false;

  constructor({ upstream, wheel, now }: HttpsUpstreamParts) {
    this.parts = upstream;
    this.wheel = wheel;
    this.now = now;
    const { host, port, serverName } = upstream.address;
    const name = serverName === '' ? host : serverName;
    this.authority = port === 443 && !name.includes(':') ? name : printHostPort(name, port);
    const method = upstream.httpMethod === 'POST' ? 'Post' : 'Get';
    this.action = `${method} "https://${this.authority}${PATH}"`;
  }

  start(exchange: UpstreamExchange, timeoutMs: number, now: number): void {
    exchange.timeoutMs = timeoutMs;
    const inFlight =
      this.#waiting.length + (this.#link?.waiting ?? 0) + (this.#http1?.waiting ?? 0);
    const crowded = inFlight >= this.parts.inFlightMax;
    if (this.#closed || crowded) {
      if (crowded) this.parts.counters.rejects.add(1);
      const why = crowded ? 'too many queries in flight' : 'closed';
      const error = new ExchangeError('local', `${this.action}: ${why}`);
      return failLater(exchange, error, this.now);
    }
    this.wheel.set(exchange, timeoutMs, now);
    this.#place(exchange, now);
  }

  close(): void {
    this.#closed = true;
    this.#link?.destroy(endError());
    this.#dialling?.give(endError());
    this.#http1?.close();
  }

  /** Called when an exchange times out while waiting for the connection. */
  timeOut(exchange: UpstreamExchange): void {
    this.parts.counters.timeouts.add(1);
    exchange.carrier = null;
    this.#waiting.splice(this.#waiting.indexOf(exchange), 1);
    exchange.failed(this.#undialled(timeoutError('dial', this.#where)), this.now());
  }

  /**
   * Called when a connection is closed or accepts no more queries. An upstream may close an idle connection just as it
   * is reused. If the connection had returned replies, its exchanges are therefore retried on a new one. On a new
   * connection, this is a failure.
   */
  gone(link: Http2Link, left: readonly UpstreamExchange[], error: ExchangeError): void {
    if (this.#link === link) {
      this.#link = null;
      this.parts.counters.sockets.add(-1);
    }
    const now = this.now();
    const again = error.failure === 'closed' && link.answered > 0 && !this.#closed;
    for (const exchange of left) {
      if (again) this.#place(exchange, now);
      else {
        this.wheel.cancel(exchange);
        exchange.failed(error, now);
      }
    }
  }

  get #where(): string {
    const { host, port } = this.parts.address;
    return `tcp ${printHostPort(host, port)}`;
  }

  /** Returns the error to report when a connection could not be established. */
  #undialled(cause: unknown): ExchangeError {
    const { failure, message } = exchangeError(cause, 'dial', this.#where);
    const error = new ExchangeError(failure, `${this.action}: ${message}`);
    error.cause = cause;
    return error;
  }

  #place(exchange: UpstreamExchange, now: number): void {
    if (this.#http1 !== null) return this.#http1.send(exchange);
    const { maxAgeMs } = this.parts;
    const link = this.#link;
    if (link !== null && link.open) {
      if (maxAgeMs === 0 || now - this.#linkBornAt < maxAgeMs) return link.send(exchange);
      this.#link = null;
      this.parts.counters.sockets.add(-1);
      link.retire();
    }
    // Queries that arrive during a connection attempt share it.
    exchange.carrier = this;
    this.#waiting.push(exchange);
    this.#dialling ??= this.#dial(now);
  }

  #dial(now: number): Dialling {
    const { address, source } = this.parts;
    const session = this.#session === null ? {} : { session: this.#session };
    const local = source === '' ? {} : { localAddress: source };
    const to = { host: address.host, port: address.port, noDelay: true, ...local };
    const ALPNProtocols = ['h2', 'http/1.1'];
    const socket = builtins.tls().connect({
      ...to,
      ...tlsOptions(this.parts),
      ...session,
      ALPNProtocols,
    });
    socket.on('session', (ticket) => {
      this.#session = ticket;
    });
    const dialling = new Dialling(socket, 'secureConnect', this.#where, (error) =>
      this.#dialled(socket, now, error),
    );
    this.wheel.set(dialling, this.#dialTime.limitMs, now);
    return dialling;
  }

  #dialled(socket: TLSSocket, began: number, error: unknown): void {
    const now = this.now();
    const waiting = this.#waiting;
    this.#waiting = [];
    this.wheel.cancel(this.#dialling!);
    this.#dialling = null;
    this.#dialTime.learn(now - began);
    if (error !== null) {
      socket.destroy();
      const failure = this.#undialled(error);
      if (failure.failure === 'timeout') this.parts.counters.timeouts.add(1);
      for (const exchange of waiting) {
        exchange.carrier = null;
        this.wheel.cancel(exchange);
        exchange.failed(failure, now);
      }
      return;
    }
    if (socket.alpnProtocol === 'h2') {
      this.#link = new Http2Link(this, socket);
      this.#linkBornAt = began;
      this.parts.counters.sockets.add(1);
    } else {
      socket.destroy();
      this.#http1 = new Http1Requests(this);
    }
    for (const exchange of waiting) this.#place(exchange, now);
  }
}
