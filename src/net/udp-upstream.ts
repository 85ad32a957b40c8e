import { printHostPort } from '../base/ip.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { failLater } from './exchange-failure.ts';
import { type Exchange, ExchangeError } from './exchange.ts';
import { type Upstream, type UpstreamParts } from './network.ts';
import { Pacing } from './pacing.ts';
import { SourcePorts } from './source-ports.ts';
import type { TimerWheel } from './timer-wheel.ts';
import type { OpenUdpPort } from './udp-port.ts';

/** Places of a queue that have been left, before they are taken away. */
const QUEUE_SLACK = 1024;

export interface UdpUpstreamParts {
  readonly upstream: UpstreamParts;
  readonly clock: Clock;
  readonly wheel: TimerWheel;
  readonly random: Random;
  readonly openPort: OpenUdpPort;
}

/**
 * One upstream over UDP. Every query leaves from a port and with an id drawn at random; only a datagram from the upstream's
 * address (the sockets are connected) to that port with that id and that question ends the wait (RFC 5452).
 */
export class UdpUpstream implements Upstream {
  readonly parts: UpstreamParts;
  readonly #clock: Clock;
  readonly #ports: SourcePorts;
  readonly #pacing: Pacing;
  /** Those that pacing holds back, the first one at `#head`. */
  #queue: Exchange[] = [];
  #head = 0;
  #alarmed = false;
  #closed = false;

  constructor({ upstream, clock, wheel, random, openPort }: UdpUpstreamParts) {
    this.parts = upstream;
    this.#clock = clock;
    this.#pacing = new Pacing(upstream.burst);
    this.#ports = new SourcePorts({
      upstream,
      wheel,
      random,
      now: () => clock.now(),
      openPort,
      remote: printHostPort(upstream.address.host, upstream.address.port),
      ended: this.#ended,
    });
  }

  start(exchange: Exchange, timeoutMs: number, now: number): void {
    exchange.timeoutMs = timeoutMs;
    if (this.#closed) return failLater(exchange, this.#gone(), () => this.#clock.now());
    if (this.#queue.length === 0 && this.#pacing.admits(now)) return this.#send(exchange, now);
    this.#queue.push(exchange);
    this.parts.counters.paced.add(1);
    this.#drainLater();
  }

  close(): void {
    this.#closed = true;
    const error = this.#gone();
    this.#ports.close(error);
    const held = this.#queue.slice(this.#head);
    this.#queue = [];
    this.#head = 0;
    for (const exchange of held) exchange.failed(error, this.#clock.now());
  }

  #gone(): ExchangeError {
    const { host, port } = this.parts.address;
    return new ExchangeError('local', `udp ${printHostPort(host, port)}: closed`);
  }

  #send(exchange: Exchange, now: number): void {
    exchange.mark = this.#pacing.sent();
    this.#ports.send(exchange, now);
  }

  #ended = (exchange: Exchange, timedOut: boolean): void => {
    this.#pacing.ended(exchange.mark);
    if (timedOut) this.#pacing.lost();
    if (this.#queue.length > 0) this.#drain();
  };

  /** Lets go of what pacing held back, as far as it may leave now. */
  #drain(): void {
    const now = this.#clock.now();
    const queue = this.#queue;
    while (this.#head < queue.length && this.#pacing.admits(now)) {
      const exchange = queue[this.#head++]!;
      this.#send(exchange, now);
    }
    if (this.#head < queue.length && this.#head < QUEUE_SLACK) return;
    queue.splice(0, this.#head);
    this.#head = 0;
  }

  /** Replies let go of what is held back; without any, time does. */
  #drainLater(): void {
    if (this.#alarmed) return;
    this.#alarmed = true;
    this.#clock.after(this.#pacing.epochMs, () => {
      this.#alarmed = false;
      this.#drain();
      if (this.#queue.length > 0) this.#drainLater();
    });
  }
}
