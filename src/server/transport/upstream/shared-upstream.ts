/** Upstreams with a single connection. */
import type { Socket } from 'node:net';
import type { Upstream, UpstreamParts } from '../upstream-address.ts';
import { Timed, type TimerWheel } from '../timer-wheel.ts';
import { DialTime } from './dial-time.ts';
import { endError, failLater, timeoutError } from './exchange-failure.ts';
import type { Carrier, ExchangeError, UpstreamExchange } from './upstream-exchange.ts';
import { UpstreamConnector } from './upstream-connector.ts';

export interface SharedUpstreamParts {
  readonly upstream: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly now: () => number;
}

/** An upstream with a single connection for all queries. Queries that arrive while it is being opened wait for it. */
export abstract class SharedUpstream implements Upstream, Carrier {
  readonly parts: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly now: () => number;
  /** Exchanges waiting for a connection, or for capacity on it. */
  protected waiting: UpstreamExchange[] = [];
  protected closed = false;
  protected readonly connector: UpstreamConnector;
  readonly #dialTime = new DialTime();
  #dialling: Dialling | null = null;

  /** @param protocols as for `UpstreamConnector` */
  constructor({ upstream, wheel, now }: SharedUpstreamParts, protocols: readonly string[] | null) {
    this.parts = upstream;
    this.wheel = wheel;
    this.now = now;
    this.connector = new UpstreamConnector(upstream, protocols);
  }

  /** Number of exchanges that were sent and have not ended. */
  protected abstract get sent(): number;
  /** Sends the exchange, or lets it wait for a connection. */
  protected abstract place(exchange: UpstreamExchange, now: number): void;
  /** Called with a new connection, for which all of `waiting` wait. */
  protected abstract opened(socket: Socket, now: number, began: number): void;
  /** Returns the error for a query that is refused. */
  protected abstract refusal(why: string): ExchangeError;
  /** Returns the error to report when a connection could not be established. */
  protected abstract undialled(cause: unknown): ExchangeError;
  /** Returns the error for a query that timed out before it could be sent. */
  protected abstract unsent(): ExchangeError;

  start(exchange: UpstreamExchange, timeoutMs: number, now: number): void {
    exchange.timeoutMs = timeoutMs;
    const crowded = this.waiting.length + this.sent >= this.parts.inFlightMax;
    if (this.closed || crowded) {
      if (crowded) this.parts.counters.rejects.add(1);
      const why = crowded ? 'too many queries in flight' : 'closed';
      return failLater(exchange, this.refusal(why), this.now);
    }
    exchange.mark = 0;
    this.wheel.set(exchange, timeoutMs, now);
    this.place(exchange, now);
  }

  close(): void {
    this.closed = true;
    this.#dialling?.give(endError());
  }

  /** Called when an exchange times out before it could be sent. */
  timeOut(exchange: UpstreamExchange): void {
    this.parts.counters.timeouts.add(1);
    exchange.carrier = null;
    this.waiting.splice(this.waiting.indexOf(exchange), 1);
    exchange.failed(this.unsent(), this.now());
  }

  protected hold(exchange: UpstreamExchange): void {
    exchange.carrier = this;
    this.waiting.push(exchange);
  }

  protected connect(): Socket {
    return this.connector.connect();
  }

  /** Opens a connection, unless one is being opened. */
  protected dial(now: number): void {
    if (this.#dialling !== null) return;
    const { event, where } = this.connector;
    const socket = this.connect();
    this.#dialling = new Dialling(socket, event, where, (cause) =>
      this.#dialled(socket, now, cause),
    );
    this.wheel.set(this.#dialling, this.#dialTime.limitMs, now);
  }

  #dialled(socket: Socket, began: number, cause: unknown): void {
    const now = this.now();
    this.wheel.cancel(this.#dialling!);
    this.#dialling = null;
    this.#dialTime.learn(now - began);
    if (cause === null) return this.opened(socket, now, began);
    socket.destroy();
    const error = this.undialled(cause);
    if (error.failure === 'timeout') this.parts.counters.timeouts.add(1);
    for (const exchange of this.waiting.splice(0)) {
      exchange.carrier = null;
      this.wheel.cancel(exchange);
      exchange.failed(error, now);
    }
  }
}

/** A connection attempt, which ends in success, with an error or at its deadline. */
class Dialling extends Timed {
  readonly #where: string;
  readonly #done: (error: unknown) => void;
  #over = false;

  /**
   * @param event the socket event that signals success
   * @param where network and address, for errors: `tcp 10.0.0.1:443`
   * @param done called once, with null if the connection succeeded
   */
  constructor(
    socket: Socket,
    event: 'connect' | 'secureConnect',
    where: string,
    done: (error: unknown) => void,
  ) {
    super();
    this.#where = where;
    this.#done = done;
    socket.once(event, () => {
      socket.off('error', this.give);
      this.give(null);
    });
    socket.on('error', this.give);
    socket.once('close', () => this.give(endError()));
  }

  readonly give = (error: unknown): void => {
    if (this.#over) return;
    this.#over = true;
    this.#done(error);
  };

  override expire(): void {
    this.give(timeoutError('dial', this.#where));
  }
}
