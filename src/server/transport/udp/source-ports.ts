/** Random source ports for queries over UDP. */
import type { Random } from '../../base/random.ts';
import { printHostPort } from '../../base/ip.ts';
import { exchangeError, failLater, timeoutError } from '../upstream/exchange-failure.ts';
import {
  type Carrier,
  type UpstreamExchange,
  ExchangeError,
} from '../upstream/upstream-exchange.ts';
import { matchReply } from '../upstream/match-reply.ts';
import { type UpstreamParts } from '../upstream-address.ts';
import type { PortAllowance } from './port-allowance.ts';
import { Timed, type TimerWheel } from '../timer-wheel.ts';
import type { OpenUdpPort, UdpPort, UdpPortOwner } from './udp-port.ts';
import { FLAG } from '../../wire/iana.ts';

/**
 * Number of queries, and of milliseconds, after which a port is replaced, so that an attacker who knows it gains
 * little.
 */
const PORT_QUERIES = 256;
const PORT_AGE_MS = 10_000;
/** Number of random ports tried to find one without waiting queries. If all have some, one of those is used. */
const DRAWS = 3;
/**
 * Number of queries in a batch that get their own ports, and the size of the groups in which later queries share ports.
 */
const OWN_PORTS = 16;
const SHARED_BY = 4;

export interface SourcePortsParts {
  readonly upstream: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly random: Random;
  readonly now: () => number;
  readonly openPort: OpenUdpPort;
  /** Returns the number of the batch to which a query sent now belongs. */
  readonly batch: () => number;
  readonly allowance: PortAllowance;
  /** The upstream's address, for errors: `10.0.0.1:53`. */
  readonly remote: string;
  /** Called when an exchange is over because of a reply, an error or (true) a timeout. */
  readonly ended: (exchange: UpstreamExchange, timedOut: boolean, now: number) => void;
}

/**
 * The source ports used for queries to one upstream (RFC 5452 section 9.2). Each query is sent with a random id from a
 * randomly chosen port, which is never the previous query's. Sockets are opened when they are chosen, and replaced
 * after a while. When many queries are sent together, later ones choose among the ports of earlier ones, so that
 * replies arriving together are read together. For any single query, all ports are still equally likely.
 */
export class SourcePorts {
  readonly #parts: SourcePortsParts;
  readonly #ports: (SourcePort | null)[];
  /** The most recently chosen port. */
  #last = -1;
  /** The current batch: its number, the number of queries so far, and the indexes of the ports chosen for them. */
  #batch = -1;
  #queries = 0;
  readonly #drawn: number[] = [];

  constructor(parts: SourcePortsParts) {
    this.#parts = parts;
    this.#ports = Array<SourcePort | null>(parts.upstream.sourcePorts).fill(null);
  }

  /** Sends the query, or fails the exchange in a later turn. The caller has already set its deadline. */
  send(exchange: UpstreamExchange, now: number): void {
    let port;
    try {
      port = this.#draw(now);
    } catch (error) {
      const { remote, upstream } = this.#parts;
      const { source } = upstream;
      const from = source === '' ? '' : `${printHostPort(source, 0)}->`;
      this.#parts.wheel.cancel(exchange);
      return failLater(
        exchange,
        exchangeError(error, 'dial', `udp ${from}${remote}`),
        this.#parts.now,
      );
    }
    port.send(exchange, now);
  }

  /** Fails all waiting exchanges and closes all ports. */
  close(error: ExchangeError): void {
    for (const port of this.#ports) port?.close(error);
    this.#ports.fill(null);
  }

  /** @throws SystemError if there is no port and none can be opened */
  #draw(now: number): SourcePort {
    const ports = this.#ports;
    const count = ports.length;
    const shared = this.#drawShared(now);
    if (shared !== null) return shared;
    let at = 0;
    for (let draws = 0; draws < DRAWS; draws++) {
      // Any except the last one, with equal probability.
      at =
        this.#last < 0 || count === 1
          ? this.#parts.random.integer(count)
          : (this.#last + 1 + this.#parts.random.integer(count - 1)) % count;
      if (((ports[at] ?? null)?.waiting ?? 0) === 0) break;
    }
    this.#last = at;
    const present = ports[at] ?? null;
    if (present?.isFit(now) === true) {
      this.#drawn.push(at);
      return present;
    }
    if (present === null && !this.#parts.allowance.permits) {
      const other = this.#anyOpen();
      if (other !== null) return other;
    }
    try {
      const made = new SourcePort(this.#parts, now, this.#forget);
      present?.retire();
      // Recorded only if something is sent, because otherwise the batch would never end.
      this.#drawn.push(at);
      return (ports[at] = made);
    } catch (error) {
      // No file descriptors are left, so use a port that is already open.
      const other = this.#anyOpen();
      if (other !== null) return other;
      throw error;
    }
  }

  /**
   * Returns a port that the batch has used, other than the last one, if it has enough ports for its queries. Null means
   * that a new one should be chosen.
   */
  #drawShared(now: number): SourcePort | null {
    const batch = this.#parts.batch();
    const drawn = this.#drawn;
    if (batch !== this.#batch) {
      this.#batch = batch;
      this.#queries = 0;
      drawn.length = 0;
    }
    this.#queries++;
    const { length } = drawn;
    if (length < OWN_PORTS || this.#queries > length * SHARED_BY) return null;
    const first = this.#parts.random.integer(length);
    const at = drawn[first] === this.#last ? drawn[(first + 1) % length]! : drawn[first]!;
    const port = this.#ports[at] ?? null;
    if (at === this.#last || port?.isFit(now) !== true) return null;
    this.#last = at;
    return port;
  }

  /** Returns an open port. The search starts at a random index to spread the load. */
  #anyOpen(): SourcePort | null {
    const ports = this.#ports;
    const first = this.#parts.random.integer(ports.length);
    for (let step = 0; step < ports.length; step++) {
      const port = ports[(first + step) % ports.length] ?? null;
      if (port?.open === true) return port;
    }
    return null;
  }

  /** Called when a port has closed itself. */
  #forget = (port: SourcePort): void => {
    const at = this.#ports.indexOf(port);
    if (at >= 0) this.#ports[at] = null;
  };
}

/** One socket and the queries waiting on it. As a `Timed`, it closes itself after it has not been used for a while. */
class SourcePort extends Timed implements Carrier, UdpPortOwner {
  readonly #parts: SourcePortsParts;
  readonly #port: UdpPort;
  readonly #forget: (port: SourcePort) => void;
  readonly #bornAt: number;
  #usedAt: number;
  #queries = 0;
  /** A linked list of waiting queries, newest first. Usually there is at most one. */
  #first: UpstreamExchange | null = null;
  #waiting = 0;
  #retired = false;
  #open = true;

  /** @throws SystemError */
  constructor(parts: SourcePortsParts, now: number, forget: (port: SourcePort) => void) {
    super();
    this.#parts = parts;
    this.#forget = forget;
    this.#bornAt = now;
    this.#usedAt = now;
    this.#port = parts.openPort(parts.upstream, this);
    parts.allowance.taken();
    parts.upstream.counters.sockets.add(1);
    parts.wheel.set(this, parts.upstream.expireMs, now);
  }

  get open(): boolean {
    return this.#open;
  }

  get waiting(): number {
    return this.#waiting;
  }

  isFit(now: number): boolean {
    return this.#open && this.#queries < PORT_QUERIES && now - this.#bornAt < PORT_AGE_MS;
  }

  send(exchange: UpstreamExchange, now: number): void {
    const { random, wheel } = this.#parts;
    let id = random.integer(65536);
    while (this.#find(id) !== null) id = random.integer(65536);
    const error = this.#port.send(exchange.query, id);
    this.#usedAt = now;
    exchange.reused = this.#queries++ > 0;
    if (error !== null) {
      wheel.cancel(exchange);
      return failLater(exchange, exchangeError(error, 'write', this.#where), this.#parts.now);
    }
    if (this.#first === null) this.#port.hold();
    exchange.id = id;
    exchange.carrier = this;
    exchange.next = this.#first;
    this.#first = exchange;
    this.#waiting++;
  }

  onDatagram(bytes: Uint8Array, start: number, end: number, cut: boolean): void {
    const id = end - start >= 2 ? (bytes[start]! << 8) | bytes[start + 1]! : -1;
    const exchange = this.#find(id);
    const match = exchange === null ? 'stray' : matchReply(exchange.query, id, bytes, start, end);
    if (exchange === null || match === 'stray') {
      this.#parts.upstream.counters.strays.add(1);
      return;
    }
    const where = match === 'garbled' ? this.#where : '';
    const now = this.#parts.now();
    this.#remove(exchange);
    this.#parts.ended(exchange, false, now);
    if (match === 'garbled') {
      const text = `read ${where}: the question of the reply cannot be read`;
      return exchange.failed(new ExchangeError('garbled', text), now);
    }
    const truncated = cut || (bytes[start + 2]! & (FLAG.TC >> 8)) !== 0;
    exchange.replied(bytes, start, end, truncated, exchange.reused, now);
  }

  onError(error: Error): void {
    this.#fail(exchangeError(error, 'read', this.#where));
  }

  onUnsent(id: number, error: Error, left: boolean): void {
    const unsent = this.#find(id);
    const told: UpstreamExchange[] = [];
    // The error does not identify the earlier query that caused it, so all queries fail.
    for (let each = this.#first; each !== null; each = each.next)
      if (left !== (each === unsent)) told.push(each);
    if (told.length === 0) return;
    const failed = exchangeError(error, left ? 'read' : 'write', this.#where);
    setImmediate(() => {
      for (const each of told) {
        if (each.carrier !== this) continue;
        this.#remove(each);
        const now = this.#parts.now();
        this.#parts.ended(each, false, now);
        each.failed(failed, now);
      }
    });
  }

  timeOut(exchange: UpstreamExchange): void {
    const where = this.#where;
    this.#remove(exchange);
    this.#parts.upstream.counters.timeouts.add(1);
    const now = this.#parts.now();
    this.#parts.ended(exchange, true, now);
    exchange.failed(timeoutError('read', where), now);
  }

  /** Accepts no more queries, and closes once the last one has ended. */
  retire(): void {
    this.#retired = true;
    if (this.#first === null) this.#shut();
  }

  close(error: ExchangeError): void {
    this.#retired = true;
    this.#fail(error);
    this.#shut();
  }

  override expire(): void {
    const { wheel, upstream, now } = this.#parts;
    const left = this.#usedAt + upstream.expireMs - now();
    if (left > 0 && !this.#retired) return wheel.set(this, left);
    this.#forget(this);
    this.retire();
  }

  get #where(): string {
    let local = '';
    try {
      local = this.#port.local;
    } catch {
      // The socket is closed, so the error is reported without it.
    }
    return `udp ${local}->${this.#parts.remote}`;
  }

  #find(id: number): UpstreamExchange | null {
    let exchange = this.#first;
    while (exchange !== null && exchange.id !== id) exchange = exchange.next;
    return exchange;
  }

  /** Fails all waiting queries. Their owners may send again from within this call. */
  #fail(error: ExchangeError): void {
    let exchange = this.#first;
    if (exchange === null) return;
    this.#first = null;
    this.#port.release();
    while (exchange !== null) {
      const next: UpstreamExchange | null = exchange.next;
      this.#leave(exchange);
      const now = this.#parts.now();
      this.#parts.ended(exchange, false, now);
      exchange.failed(error, now);
      exchange = next;
    }
    if (this.#retired && this.#first === null) this.#shut();
  }

  #remove(exchange: UpstreamExchange): void {
    if (this.#first === exchange) this.#first = exchange.next;
    else {
      let before = this.#first!;
      while (before.next !== exchange) before = before.next!;
      before.next = exchange.next;
    }
    this.#leave(exchange);
    if (this.#first !== null) return;
    this.#port.release();
    if (this.#retired) this.#shut();
  }

  #leave(exchange: UpstreamExchange): void {
    this.#waiting--;
    exchange.next = null;
    exchange.carrier = null;
    this.#parts.wheel.cancel(exchange);
  }

  #shut(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#parts.wheel.cancel(this);
    this.#parts.allowance.givenBack();
    this.#parts.upstream.counters.sockets.add(-1);
    this.#port.close();
    this.#forget(this);
  }
}
