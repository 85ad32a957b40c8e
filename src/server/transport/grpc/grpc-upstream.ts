/** Upstreams over gRPC. */
import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { printHostPort } from '../../base/ip.ts';
import { MESSAGE_MAX } from '../../wire/iana.ts';
import { exchangeError } from '../upstream/exchange-failure.ts';
import { matchReply } from '../upstream/match-reply.ts';
import { SharedUpstream } from '../upstream/shared-upstream.ts';
import type { UpstreamParts } from '../upstream-address.ts';
import type { TimerWheel } from '../timer-wheel.ts';
import {
  ExchangeError,
  type Carrier,
  type UpstreamExchange,
} from '../upstream/upstream-exchange.ts';
import { sizeUpstream, writeQuery } from '../upstream/write-query.ts';
import { DnsPacketReader, PACKET_PREFIX_MAX, QUERY_PATH, writePacketPrefix } from './dns-packet.ts';
import { GrpcConnection } from './grpc-connection.ts';
import { GrpcFailure, STATUS, statusName } from './grpc-failure.ts';
import { PREFIX, type GrpcCall, type GrpcStream } from './grpc-stream.ts';

/** Maximum size of a reply that contains nothing but a `DnsPacket`. */
const PACKET_MAX = MESSAGE_MAX + PACKET_PREFIX_MAX;

export interface GrpcUpstreamParts {
  readonly upstream: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly clock: Clock;
}

/**
 * A gRPC upstream (`coredns.dns.DnsService`). A single HTTP/2 connection carries all queries, with TLS if `tls` is set.
 * Queries beyond the server's limit wait. Errors are worded like those of Go's gRPC client.
 */
export class GrpcUpstream extends SharedUpstream {
  readonly #clock: Clock;
  readonly #authority: string;
  readonly #calls = new Set<DnsCall>();
  #connection: GrpcConnection | null = null;
  #bornAt = 0;
  /** True if the current connection has returned a reply. */
  #answered = false;
  /** The header block for every call on the connection. */
  #block: Buffer = Buffer.alloc(0);

  constructor({ upstream, wheel, clock }: GrpcUpstreamParts) {
    super({ upstream, wheel, now: () => clock.now() }, upstream.tls === null ? null : ['h2']);
    this.#clock = clock;
    const { host, port, serverName } = upstream.address;
    const isLocal = host.startsWith('unix:');
    this.#authority =
      serverName !== '' ? serverName : isLocal ? 'localhost' : printHostPort(host, port);
  }

  override close(): void {
    super.close();
    this.#connection?.close(new GrpcFailure('unavailable', 'the connection is closing'));
  }

  /**
   * Called when a call has timed out. If nothing has been received on the connection since the call started, it may be
   * half-open and is closed.
   */
  late(call: DnsCall): void {
    const { exchange, began } = call;
    this.parts.counters.timeouts.add(1);
    this.#over(call);
    const connection = this.#connection;
    exchange.failed(late(), this.now());
    if (connection !== null && connection === this.#connection && connection.heardAt < began)
      connection.close(new GrpcFailure('silent', 'keepalive ping failed to receive ACK'));
    this.#goOn();
  }

  /** Called when a call has ended with a reply or a failure. */
  ended(call: DnsCall, failure: GrpcFailure | null): void {
    const { exchange, packet } = call;
    this.#over(call);
    const now = this.now();
    // A server may close a connection just as we reuse it. If the connection has returned replies before, the exchange
    // is retried.
    const gone = failure !== null && this.#connection?.open !== true && !this.closed;
    if (gone && call.reused && exchange.mark === 0) {
      exchange.mark = 1;
      this.place(exchange, now);
      return;
    }
    this.wheel.cancel(exchange);
    if (failure !== null) exchange.failed(failed(failure), now);
    else {
      this.#answered = true;
      this.#deliver(exchange, packet, call.reused, now);
    }
    this.#goOn();
  }

  protected override get sent(): number {
    return this.#calls.size;
  }

  protected override refusal(why: string): ExchangeError {
    return errorOf('local', STATUS.RESOURCE_EXHAUSTED, why);
  }

  protected override unsent(): ExchangeError {
    return late();
  }

  #deliver(exchange: UpstreamExchange, packet: Buffer, reused: boolean, now: number): void {
    const wrong = packets.read(packet, 0, packet.length);
    const { start, end } = packets;
    const id = end - start >= 2 ? packet.readUInt16BE(start) : 0;
    if (wrong !== null || matchReply(exchange.query, id, packet, start, end) !== 'reply') {
      const text = wrong ?? 'the message is not a reply to the query';
      return exchange.failed(errorOf('garbled', STATUS.INTERNAL, text), now);
    }
    exchange.replied(packet, start, end, false, reused, now);
  }

  /** Forgets a call whose exchange has stopped waiting. */
  #over(call: DnsCall): void {
    this.#calls.delete(call);
    call.exchange.carrier = null;
  }

  protected override place(exchange: UpstreamExchange, now: number): void {
    const { maxAgeMs } = this.parts;
    const connection = this.#connection;
    if (connection !== null && connection.open) {
      if (maxAgeMs === 0 || now - this.#bornAt < maxAgeMs || this.#calls.size > 0) {
        if (this.waiting.length === 0 && connection.room > 0)
          return this.#ask(connection, exchange);
      } else
        connection.close(
          new GrpcFailure('unavailable', 'the connection has reached its maximum age'),
        );
    }
    this.hold(exchange);
    if (this.#connection === null || !this.#connection.open) this.dial(now);
  }

  #goOn(): void {
    const connection = this.#connection;
    if (connection === null || !connection.open) {
      if (this.waiting.length > 0 && !this.closed) this.dial(this.now());
      return;
    }
    while (this.waiting.length > 0 && connection.open && connection.room > 0)
      this.#ask(connection, this.waiting.shift()!);
  }

  #ask(connection: GrpcConnection, exchange: UpstreamExchange): void {
    const { query } = exchange;
    const call = new DnsCall(this, exchange, this.now(), this.#answered);
    exchange.carrier = call;
    this.#calls.add(call);
    const size = sizeUpstream(query);
    const bytes = Buffer.allocUnsafe(PREFIX + PACKET_PREFIX_MAX + size);
    const at = writePacketPrefix(bytes, 0, size);
    writeQuery(query, 0, bytes, at);
    call.stream = connection.begin(this.#block, call);
    call.stream.writeFramed(bytes.subarray(0, at + size), true);
  }

  /** The connection does not keep the process alive, because queries only wait until their deadlines. */
  protected override connect(): Socket {
    return super.connect().unref();
  }

  protected override opened(socket: Socket, now: number): void {
    const connection = new GrpcConnection({
      socket,
      secure: this.parts.tls !== null,
      authority: this.#authority,
      clock: this.#clock,
      messageMax: PACKET_MAX,
      onClose: () => {
        this.parts.counters.sockets.add(-1);
        if (this.#connection === connection) this.#connection = null;
      },
    });
    this.#connection = connection;
    this.#bornAt = now;
    this.#answered = false;
    this.#block = connection.fields(QUERY_PATH);
    this.parts.counters.sockets.add(1);
    this.#goOn();
  }

  protected override undialled(cause: unknown): ExchangeError {
    const { failure, message } = exchangeError(cause, 'dial', this.connector.where);
    const what = failure === 'tls' ? 'authentication handshake failed' : 'Error while dialing';
    const text = `connection error: desc = "transport: ${what}: ${message}"`;
    return errorOf(failure, STATUS.UNAVAILABLE, text, cause);
  }
}

class DnsCall implements GrpcCall, Carrier {
  readonly exchange: UpstreamExchange;
  readonly began: number;
  /** True if the connection had already returned a reply. */
  readonly reused: boolean;
  stream: GrpcStream | null = null;
  packet: Buffer = Buffer.alloc(0);
  readonly #upstream: GrpcUpstream;

  constructor(upstream: GrpcUpstream, exchange: UpstreamExchange, began: number, reused: boolean) {
    this.#upstream = upstream;
    this.exchange = exchange;
    this.began = began;
    this.reused = reused;
  }

  timeOut(): void {
    this.stream?.cancel();
    this.#upstream.late(this);
  }

  /** The status arrives later, so the message has to be copied. */
  onMessage(message: Buffer): void {
    this.packet = Buffer.from(message);
  }

  onEnd(failure: GrpcFailure | null): void {
    this.#upstream.ended(this, failure);
  }
}

const packets = new DnsPacketReader();

function late(): ExchangeError {
  return errorOf('timeout', STATUS.DEADLINE_EXCEEDED, timeoutText);
}

const timeoutText = 'context deadline exceeded';

function failed(failure: GrpcFailure): ExchangeError {
  const kind =
    failure.kind === 'unavailable' ? 'closed' : failure.kind === 'silent' ? 'timeout' : 'http';
  return errorOf(kind, failure.code, failure.message, failure);
}

/** Formats an error the way Go's gRPC client does: `rpc error: code = Unavailable desc = …`. */
function errorOf(
  failure: ExchangeError['failure'],
  code: number,
  text: string,
  cause?: unknown,
): ExchangeError {
  const error = new ExchangeError(failure, `rpc error: code = ${statusName(code)} desc = ${text}`);
  if (cause !== undefined) error.cause = cause;
  return error;
}
