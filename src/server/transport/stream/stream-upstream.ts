/** Upstreams over TCP and TLS. */
import { printHostPort } from '../../base/ip.ts';
import type { Random } from '../../base/random.ts';
import { DialTime } from '../upstream/dial-time.ts';
import { endError, failLater } from '../upstream/exchange-failure.ts';
import { type UpstreamExchange, ExchangeError } from '../upstream/upstream-exchange.ts';
import { type Upstream, type UpstreamParts } from '../upstream-address.ts';
import { StreamLink, type StreamLinkHost } from './stream-link.ts';
import type { TimerWheel } from '../timer-wheel.ts';
import { UpstreamConnector } from '../upstream/upstream-connector.ts';

/** Up to this number of connections, every query gets a connection of its own. */
const UNSHARED = 8;

export interface StreamUpstreamParts {
  readonly upstream: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly random: Random;
  readonly now: () => number;
}

/**
 * One upstream over TCP or TLS (RFC 7766, RFC 7858). While there are few connections, each query gets its own, so that
 * a slow name does not delay others. Beyond that, connections carry several queries at a time, whose replies may arrive
 * in any order. Idle connections stay open for later queries. If the upstream has closed one, the query is retried on a
 * new one.
 */
export class StreamUpstream implements Upstream, StreamLinkHost {
  readonly parts: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly random: Random;
  readonly now: () => number;
  readonly #connector: UpstreamConnector;
  readonly #dialTime = new DialTime();
  /** All connections that are open or being opened, ordered by when they were opened. */
  readonly #links: StreamLink[] = [];
  #closed = false;

  constructor({ upstream, wheel, random, now }: StreamUpstreamParts) {
    this.parts = upstream;
    this.wheel = wheel;
    this.random = random;
    this.now = now;
    this.#connector = new UpstreamConnector(upstream, upstream.proto === 'tls' ? [] : null);
  }

  start(exchange: UpstreamExchange, timeoutMs: number, now: number): void {
    exchange.timeoutMs = timeoutMs;
    if (this.#closed) {
      const error = new ExchangeError('local', `tcp ${this.remote}: closed`);
      return failLater(exchange, error, this.now);
    }
    this.wheel.set(exchange, timeoutMs, now);
    this.#place(exchange, now, false);
  }

  close(): void {
    this.#closed = true;
    for (const link of [...this.#links]) link.destroy(endError());
  }

  get remote(): string {
    const { host, port } = this.parts.address;
    return printHostPort(host, port);
  }

  /** @param fresh true if only a new connection may be used */
  #place(exchange: UpstreamExchange, now: number, fresh: boolean): void {
    let best: StreamLink | null = null;
    // The most recently used connection is the one least likely to have been closed by the upstream.
    for (let i = this.#links.length - 1; i >= 0; i--) {
      const link = this.#links[i]!;
      if (!link.takes(now) || (fresh && link.answered > 0)) continue;
      if (best === null || link.waiting < best.waiting) best = link;
    }
    const room = this.#links.length < this.parts.maxConnections;
    const share = best !== null && (best.waiting === 0 || this.#links.length >= UNSHARED);
    if (best !== null && (share || !room)) return best.send(exchange);
    if (room) return this.#dial(now).send(exchange);
    this.wheel.cancel(exchange);
    const text = `dial tcp ${this.remote}: too many connections`;
    failLater(exchange, new ExchangeError('local', text), this.now);
  }

  #dial(now: number): StreamLink {
    const link = new StreamLink(this, this.#connector.connect(), now, this.#dialTime.limitMs);
    this.#links.push(link);
    this.parts.counters.sockets.add(1);
    return link;
  }

  dialled(tookMs: number): void {
    this.#dialTime.learn(tookMs);
  }

  /** Returns true if an idle connection may stay open, or false if there are enough already. */
  keeps(link: StreamLink): boolean {
    const { maxIdle } = this.parts;
    if (this.#closed) return false;
    if (maxIdle === 0) return true;
    return this.#links.filter((other) => other !== link && other.waiting === 0).length < maxIdle;
  }

  /**
   * Called when a connection is closed. An upstream may close an idle connection just as it is reused. If the
   * connection had returned replies, its exchanges are therefore retried on a new one. On a new connection, this is a
   * failure.
   */
  gone(link: StreamLink, left: readonly UpstreamExchange[], error: ExchangeError): void {
    const at = this.#links.indexOf(link);
    if (at >= 0) {
      this.#links.splice(at, 1);
      this.parts.counters.sockets.add(-1);
    }
    const now = this.now();
    const again = error.failure === 'closed' && link.answered > 0 && !this.#closed;
    for (const exchange of left) {
      if (again) this.#place(exchange, now, true);
      else {
        this.wheel.cancel(exchange);
        exchange.failed(error, now);
      }
    }
  }
}
