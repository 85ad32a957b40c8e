/** Upstreams over HTTPS. */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { printHostPort } from '../../base/ip.ts';
import { Http2Link, type Http2Host } from '../http2/http2-link.ts';
import { endError, exchangeError, timeoutError } from '../upstream/exchange-failure.ts';
import { SharedUpstream, type SharedUpstreamParts } from '../upstream/shared-upstream.ts';
import { ExchangeError, type UpstreamExchange } from '../upstream/upstream-exchange.ts';
import { Http1Requests } from './http1-requests.ts';

const PATH = '/dns-query';

/**
 * An HTTPS upstream (RFC 8484). It uses a single HTTP/2 connection for all queries, or HTTP/1.1 connections if the
 * server prefers that. Queries are sent with id 0 so that HTTP caches can work.
 */
export class HttpsUpstream extends SharedUpstream implements Http2Host {
  readonly authority: string;
  readonly path: '/dns-query' = PATH;
  readonly action: string;
  #link: Http2Link | null = null;
  #linkBornAt = 0;
  /** Set once the server has chosen HTTP/1.1. */
  #http1: Http1Requests | null = null;

  constructor(parts: SharedUpstreamParts) {
    super(parts, ['h2', 'http/1.1']);
    const { address, httpMethod } = parts.upstream;
    const { host, port, serverName } = address;
    const name = serverName === '' ? host : serverName;
    this.authority = port === 443 && !name.includes(':') ? name : printHostPort(name, port);
    const method = httpMethod === 'POST' ? 'Post' : 'Get';
    this.action = `${method} "https://${this.authority}${PATH}"`;
  }

  override close(): void {
    super.close();
    this.#link?.destroy(endError());
    this.#http1?.close();
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
    const again = error.failure === 'closed' && link.answered > 0 && !this.closed;
    for (const exchange of left) {
      if (again) this.place(exchange, now);
      else {
        this.wheel.cancel(exchange);
        exchange.failed(error, now);
      }
    }
  }

  protected override get sent(): number {
    return (this.#link?.waiting ?? 0) + (this.#http1?.waiting ?? 0);
  }

  protected override refusal(why: string): ExchangeError {
    return new ExchangeError('local', `${this.action}: ${why}`);
  }

  protected override unsent(): ExchangeError {
    return this.undialled(timeoutError('dial', this.connector.where));
  }

  protected override undialled(cause: unknown): ExchangeError {
    const { failure, message } = exchangeError(cause, 'dial', this.connector.where);
    const error = new ExchangeError(failure, `${this.action}: ${message}`);
    error.cause = cause;
    return error;
  }

  protected override place(exchange: UpstreamExchange, now: number): void {
    if (this.#http1 !== null) return this.#http1.send(exchange);
    const { maxAgeMs } = this.parts;
    const link = this.#link;
    if (link !== null && link.open) {
      if (maxAgeMs === 0 || now - this.#linkBornAt < maxAgeMs) return link.send(exchange);
      this.#link = null;
      this.parts.counters.sockets.add(-1);
      link.retire();
    }
    this.hold(exchange);
    this.dial(now);
  }

  protected override opened(socket: Socket, now: number, began: number): void {
    const waiting = this.waiting;
    this.waiting = [];
    const secured = socket as TLSSocket;
    if (secured.alpnProtocol === 'h2') {
      this.#link = new Http2Link(this, secured);
      this.#linkBornAt = began;
      this.parts.counters.sockets.add(1);
    } else {
      socket.destroy();
      this.#http1 = new Http1Requests(this);
    }
    for (const exchange of waiting) this.place(exchange, now);
  }
}
