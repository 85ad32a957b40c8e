import type { Random } from '../base/random.ts';
import type { Query } from '../wire/query.ts';
import { FLAG } from '../wire/iana.ts';
import { printHostPort } from './address.ts';
import { exchangeError, timeoutError } from './exchange-failure.ts';
import { isReplyTo, takeReply } from './match-reply.ts';
import {
  ExchangeError,
  type ExchangeReply,
  type NetworkCounters,
  type Upstream,
  type UpstreamParts,
} from './network.ts';
import { Timed, type TimerWheel } from './timer-wheel.ts';
import type { OpenUdpPort, UdpPort } from './udp-port.ts';

/** Sockets, hence source ports, that the queries to one upstream are spread over. */
const PORTS = 32;
/** A socket is replaced after so many queries or milliseconds: who has found out its port gains little. */
const PORT_QUERIES = 512;
const PORT_AGE_MS = 10_000;
/** Queries to one upstream that may wait at a time. */
const MAX_IN_FLIGHT = 16_384;

export interface UdpUpstreamParts {
  readonly upstream: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly random: Random;
  readonly now: () => number;
  readonly openPort: OpenUdpPort;
  readonly counters: NetworkCounters;
}

/**
 * One upstream over UDP. Every query leaves from a port and with an id drawn at random; only a datagram from the upstream's
 * address (the sockets are connected) to that port with that id and that question ends the wait (RFC 5452).
 */
export class UdpUpstream implements Upstream {
  readonly parts: UpstreamParts;
  readonly #parts: UdpUpstreamParts;
  readonly #ports: (Port | null)[] = Array<Port | null>(PORTS).fill(null);
  /** The one picked last. */
  #last: Port | null = null;
  #inFlight = 0;
  #closed = false;

  constructor(parts: UdpUpstreamParts) {
    this.parts = parts.upstream;
    this.#parts = parts;
  }

  exchange(query: Query, timeoutMs: number): Promise<ExchangeReply> {
    const kept = query.keep();
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new ExchangeError('local', `${this.#where}: closed`));
      if (this.#inFlight >= MAX_IN_FLIGHT) {
        return reject(new ExchangeError('local', `${this.#where}: too many queries in flight`));
      }
      let port;
      try {
        port = this.#pick();
      } catch (error) {
        return reject(exchangeError(error, `dial ${this.#where}`));
      }
      this.#parts.counters.exchanges++;
      port.start(new Exchange(port, kept, resolve, reject), timeoutMs);
    });
  }

  close(): void {
    this.#closed = true;
    for (const port of this.#ports) {
      port?.fail(new ExchangeError('local', `${this.#where}: closed`));
      port?.close();
    }
    this.#ports.fill(null);
  }

  get #where(): string {
    const { host, port } = this.parts.address;
    return `udp ${printHostPort(host, port)}`;
  }

  /**
   * A port at random; it is opened, or replaced, if need be. Queries of the same turn leave from the same one, with one
   * system call: nobody has seen it between them.
   */
  #pick(): Port {
    const last = this.#last;
    if (last !== null && last.gathering && !last.isWorn(this.#parts.now())) return last;
    return (this.#last = this.#draw());
  }

  #draw(): Port {
    const at = this.#parts.random.integer(PORTS);
    const present = this.#ports[at]!;
    if (present !== null && !present.isWorn(this.#parts.now())) return present;
    present?.retire();
    const made = new Port(this.#parts, this.#where, this.#count, this.#forget);
    this.#ports[at] = made;
    return made;
  }

  #count = (change: number): void => {
    this.#inFlight += change;
  };

  /** A port has closed itself. */
  #forget = (port: Port): void => {
    const at = this.#ports.indexOf(port);
    if (at >= 0) this.#ports[at] = null;
    if (this.#last === port) this.#last = null;
  };
}

/** One socket and the queries that wait on it. As a deadline: closes itself when nobody has used it for a while. */
class Port extends Timed {
  readonly #parts: UdpUpstreamParts;
  readonly #where: string;
  readonly #socket: UdpPort;
  readonly #count: (change: number) => void;
  readonly #forget: (port: Port) => void;
  readonly #waiting = new Map<number, Exchange>();
  readonly #bornAt: number;
  #queries = 0;
  #retired = false;
  #closed = false;

  constructor(
    parts: UdpUpstreamParts,
    where: string,
    count: (change: number) => void,
    forget: (port: Port) => void,
  ) {
    super();
    this.#parts = parts;
    this.#where = where;
    this.#count = count;
    this.#forget = forget;
    this.#bornAt = parts.now();
    this.#socket = parts.openPort({
      upstream: parts.upstream,
      onDatagram: this.#onDatagram,
      onError: (error) => this.fail(exchangeError(error, `read ${where}`)),
    });
    parts.counters.udpSockets++;
    parts.wheel.set(this, parts.upstream.expireMs);
  }

  isWorn(now: number): boolean {
    return this.#closed || this.#queries >= PORT_QUERIES || now - this.#bornAt >= PORT_AGE_MS;
  }

  get gathering(): boolean {
    return this.#socket.gathering;
  }

  start(exchange: Exchange, timeoutMs: number): void {
    const { random, wheel, upstream } = this.#parts;
    let id = random.integer(65536);
    // At most PORT_QUERIES wait here: a free id is found at once.
    while (this.#waiting.has(id)) id = random.integer(65536);
    exchange.id = id;
    if (this.#waiting.size === 0) this.#socket.hold();
    this.#waiting.set(id, exchange);
    this.#count(1);
    exchange.reused = ++this.#queries > 1;
    wheel.set(exchange, timeoutMs);
    wheel.set(this, upstream.expireMs);
    this.#socket.send(exchange.query, id);
  }

  #onDatagram = (bytes: Uint8Array, start: number, end: number, cut: boolean): void => {
    const id = end - start >= 2 ? (bytes[start]! << 8) | bytes[start + 1]! : -1;
    const exchange = this.#waiting.get(id);
    if (exchange === undefined || !isReplyTo(exchange.query, id, bytes, start, end)) {
      this.#parts.counters.strays++;
      return;
    }
    this.end(exchange);
    exchange.resolve({
      bytes: takeReply(exchange.query, bytes, start, end),
      truncated: cut || (bytes[start + 2]! & (FLAG.TC >> 8)) !== 0,
      reused: exchange.reused,
    });
  };

  /** The exchange is over: its id is free again. */
  end(exchange: Exchange): void {
    if (!this.#waiting.delete(exchange.id)) return;
    this.#parts.wheel.cancel(exchange);
    this.#count(-1);
    if (this.#waiting.size > 0) return;
    this.#socket.release();
    if (this.#retired) this.close();
  }

  timeOut(exchange: Exchange): void {
    this.end(exchange);
    this.#parts.counters.timeouts++;
    exchange.reject(timeoutError(`read ${this.#where}`));
  }

  /** All that wait here fail. */
  fail(error: ExchangeError): void {
    for (const exchange of this.#waiting.values()) {
      this.end(exchange);
      exchange.reject(error);
    }
  }

  /** Takes no more queries; closes when the last one has ended. */
  retire(): void {
    this.#retired = true;
    if (this.#waiting.size === 0) this.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#parts.wheel.cancel(this);
    this.#parts.counters.udpSockets--;
    this.#socket.close();
    this.#forget(this);
  }

  override expire(): void {
    this.retire();
    this.#forget(this);
  }
}

class Exchange extends Timed {
  readonly query: Query;
  readonly resolve: (reply: ExchangeReply) => void;
  readonly reject: (error: ExchangeError) => void;
  readonly #port: Port;
  id = 0;
  reused = false;

  constructor(
    port: Port,
    query: Query,
    resolve: (reply: ExchangeReply) => void,
    reject: (error: ExchangeError) => void,
  ) {
    super();
    this.#port = port;
    this.query = query;
    this.resolve = resolve;
    this.reject = reject;
  }

  override expire(): void {
    this.#port.timeOut(this);
  }
}
