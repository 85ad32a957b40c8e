/** Sends queries to an upstream over UDP, each from a socket with a random port. */
import { printHostPort } from '../../base/ip.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import { failLater, timeoutError } from '../upstream/exchange-failure.ts';
import {
  type Carrier,
  type UpstreamExchange,
  ExchangeError,
} from '../upstream/upstream-exchange.ts';
import type { Upstream, UpstreamParts } from '../upstream-address.ts';
import { Pacing } from '../pacing.ts';
import type { PortAllowance } from './port-allowance.ts';
import { SourcePorts } from './source-ports.ts';
import type { TimerWheel } from '../timer-wheel.ts';
import type { OpenUdpPort } from './udp-port.ts';

export interface UdpUpstreamParts {
  readonly upstream: UpstreamParts;
  readonly clock: Clock;
  readonly wheel: TimerWheel;
  readonly random: Random;
  readonly openPort: OpenUdpPort;
  /** Returns the number of the batch to which a query sent now belongs. */
  readonly batch: () => number;
  readonly allowance: PortAllowance;
}

/**
 * One upstream over UDP. Every query has a random port and a random id. The wait ends only with a datagram from the
 * upstream's address to that port, with the same id and question (RFC 5452).
 */
export class UdpUpstream implements Upstream, Carrier {
  readonly parts: UpstreamParts;
  readonly #clock: Clock;
  readonly #wheel: TimerWheel;
  readonly #ports: SourcePorts;
  readonly #pacing: Pacing;
  /** First and last element of a linked list of exchanges held back by pacing. */
  #first: UpstreamExchange | null = null;
  #last: UpstreamExchange | null = null;
  #alarmed = false;
  #closed = false;

  constructor(parts: UdpUpstreamParts) {
    const { upstream, clock, wheel, random, openPort, batch, allowance } = parts;
    this.parts = upstream;
    this.#clock = clock;
    this.#wheel = wheel;
    this.#pacing = new Pacing(upstream.burst);
    this.#ports = new SourcePorts({
      upstream,
      wheel,
      random,
      now: () => clock.now(),
      openPort,
      batch,
      allowance,
      remote: printHostPort(upstream.address.host, upstream.address.port),
      ended: this.#ended,
    });
  }

  start(exchange: UpstreamExchange, timeoutMs: number, now: number): void {
    exchange.timeoutMs = timeoutMs;
    if (this.#closed) return failLater(exchange, this.#gone(), () => this.#clock.now());
    this.#wheel.set(exchange, timeoutMs, now);
    if (this.#first === null && this.#pacing.admits(now)) return this.#send(exchange, now);
    this.#hold(exchange);
    this.parts.counters.paced.add(1);
    this.#drainLater();
  }

  close(): void {
    this.#closed = true;
    const error = this.#gone();
    this.#ports.close(error);
    for (let held = this.#first; held !== null; held = this.#first) {
      this.#release(held);
      this.#wheel.cancel(held);
      held.failed(error, this.#clock.now());
    }
  }

  /** Called when an exchange times out while held back, because the upstream stayed silent the whole time. */
  timeOut(exchange: UpstreamExchange): void {
    const { host, port } = this.parts.address;
    this.#release(exchange);
    this.parts.counters.timeouts.add(1);
    exchange.failed(timeoutError('read', `udp ->${printHostPort(host, port)}`), this.#clock.now());
  }

  #hold(exchange: UpstreamExchange): void {
    exchange.carrier = this;
    exchange.next = null;
    exchange.previous = this.#last;
    if (this.#last === null) this.#first = exchange;
    else this.#last.next = exchange;
    this.#last = exchange;
  }

  #release(exchange: UpstreamExchange): void {
    const { previous, next } = exchange;
    if (previous === null) this.#first = next;
    else previous.next = next;
    if (next === null) this.#last = previous;
    else next.previous = previous;
    exchange.previous = null;
    exchange.next = null;
    exchange.carrier = null;
  }

  #gone(): ExchangeError {
    const { host, port } = this.parts.address;
    return new ExchangeError('local', `udp ${printHostPort(host, port)}: closed`);
  }

  #send(exchange: UpstreamExchange, now: number): void {
    exchange.mark = this.#pacing.sent();
    this.#ports.send(exchange, now);
  }

  #ended = (exchange: UpstreamExchange, timedOut: boolean, now: number): void => {
    this.#pacing.ended(exchange.mark, !timedOut);
    if (this.#first !== null) this.#drain(now);
  };

  /** Sends as many of the held-back exchanges as may be sent now. */
  #drain(now: number): void {
    for (let held = this.#first; held !== null && this.#pacing.admits(now); held = this.#first) {
      this.#release(held);
      this.#send(held, now);
    }
  }

  /** Schedules `#drain`. Replies trigger it as well, but if there are none, a timer has to. */
  #drainLater(): void {
    if (this.#alarmed) return;
    this.#alarmed = true;
    this.#clock.after(this.#pacing.epochMs, () => {
      this.#alarmed = false;
      this.#drain(this.#clock.now());
      if (this.#first !== null) this.#drainLater();
    });
  }
}
