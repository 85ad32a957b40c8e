/** DNS over HTTP/1.1. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import { builtins } from '../../base/builtins.ts';
import type { Query } from '../query.ts';
import { MEDIA_TYPE, type DnsOverHttps } from '../http2/dns-over-https.ts';
import { ConnectionEnds } from '../connection-ends.ts';
import { GatheredMessage } from '../stream/gathered-message.ts';
import { OutletPending, type Outlet } from '../outlet.ts';
import type { StreamConnection, StreamListener } from '../stream/stream-listener.ts';
import { Timed } from '../timer-wheel.ts';
import { arena } from '../write-reply.ts';

/** Connections keep track of time themselves, so idle ones need no timers from the runtime. */
const OPTIONS = {
  headersTimeout: 0,
  requestTimeout: 0,
  keepAliveTimeout: 0,
  connectionsCheckingInterval: 0x7fffffff,
};

/**
 * A listener's HTTP/1.1 connections, whose requests are parsed by the runtime. Created when the first connection
 * arrives.
 */
export class Http1Connections {
  readonly #service: DnsOverHttps;
  readonly #server: Server;
  readonly #bySocket = new WeakMap<Socket, Http1Connection>();

  constructor(service: DnsOverHttps) {
    this.#service = service;
    this.#server = builtins.http().createServer(OPTIONS, (request, response) => {
      this.#bySocket.get(request.socket)?.take(request, response);
    });
    this.#server.setTimeout(0);
  }

  connect(socket: Socket, host: StreamListener): StreamConnection {
    const connection = new Http1Connection(socket, host, this.#service);
    this.#bySocket.set(socket, connection);
    this.#server.emit('connection', socket);
    return connection;
  }
}

/** A request and the memory it uses, which is its body while being received and its reply while being sent. */
class Http1Request {
  readonly response: ServerResponse;
  held = 0;

  constructor(response: ServerResponse) {
    this.response = response;
  }
}

class Http1Connection extends Timed implements StreamConnection, Outlet<Http1Request> {
  readonly pending = new OutletPending();
  readonly out: Uint8Array = arena;
  readonly at = 0;
  readonly full = false;
  readonly #socket: Socket;
  readonly #host: StreamListener;
  readonly #service: DnsOverHttps;
  readonly #ends: ConnectionEnds;
  readonly #requests = new Set<Http1Request>();
  #present: Http1Request | null = null;
  #held = 0;
  #ended = false;

  constructor(socket: Socket, host: StreamListener, service: DnsOverHttps) {
    super();
    this.#socket = socket;
    this.#host = host;
    this.#service = service;
    this.#ends = new ConnectionEnds(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', this.#onClose);
    host.wheel.set(this, host.limits.readTimeoutMs);
  }

  get busy(): boolean {
    return this.#requests.size > 0;
  }

  get held(): number {
    return this.#held + this.pending.bytes;
  }

  finish(): void {
    this.#ended = true;
    this.#host.wheel.set(this, this.#host.limits.writeTimeoutMs);
    if (this.#requests.size === 0) this.#socket.destroySoon();
  }

  destroy(): void {
    this.#host.intake.drop(this);
    this.#socket.destroy();
  }

  override expire(): void {
    this.#host.counters.timedOut.add(1);
    if (this.#ended || this.busy) this.destroy();
    else this.finish();
  }

  #onClose = (): void => {
    this.#ended = true;
    this.#host.wheel.cancel(this);
    this.#host.intake.drop(this);
    this.#host.forget(this);
  };

  take(incoming: IncomingMessage, response: ServerResponse): void {
    this.#host.touch(this);
    const request = new Http1Request(response);
    this.#requests.add(request);
    incoming.on('error', () => {});
    response.on('error', () => {});
    response.on('close', () => this.#over(request));
    const target = Buffer.from(incoming.url ?? '', 'latin1');
    const verdict = this.#ended
      ? 503
      : this.#service.judgeTarget(incoming.method ?? '', target, target.length);
    if (typeof verdict === 'number') {
      this.#answer(request, verdict);
    } else if (verdict === 'message') {
      this.#serve(request, this.#service.message, this.#service.length);
    } else {
      this.#readBody(request, incoming);
    }
  }

  #readBody(request: Http1Request, incoming: IncomingMessage): void {
    let body: GatheredMessage | null = new GatheredMessage();
    incoming.on('data', (chunk: Buffer) => {
      if (body === null) return;
      const before = body.held;
      if (body.add(chunk, 0, chunk.length)) {
        this.#hold(request, body.held - before);
      } else {
        // The rest of the body is discarded, for at most the time that a connection may stay open without a query.
        body = null;
        this.#hold(request, -request.held);
        this.#answer(request, 400);
      }
    });
    incoming.on('end', () => {
      if (body === null) return;
      this.#hold(request, -request.held);
      this.#serve(request, body.bytes, body.length);
    });
  }

  #serve(request: Http1Request, bytes: Uint8Array, length: number): void {
    const { wheel, limits, intake, clock } = this.#host;
    if (!this.#ended) wheel.set(this, limits.idleTimeoutMs);
    this.#present = request;
    intake.take(this, bytes, 0, length, clock.now());
    this.#present = null;
    if (this.pending.size >= limits.pipelined) this.#socket.pause();
  }

  identify(query: Query): void {
    this.#ends.identify(query, this.#host.intake.proto);
  }

  reserve(): void {
    // Each reply is sent right away, so the arena is always empty.
  }

  send(length: number, way: Http1Request | null): void {
    const request = way ?? this.#present!;
    const { response } = request;
    const { counters } = this.#host;
    if (response.destroyed || response.writableEnded) {
      counters.dropped.add(1);
      return;
    }
    counters.sent.add(1);
    response.setHeader('content-type', MEDIA_TYPE);
    response.setHeader('cache-control', this.#service.cacheControl(arena, 0, length));
    this.#answer(request, 200, Buffer.from(arena.subarray(0, length)));
  }

  keepSilent(way: Http1Request | null): void {
    this.#answer(way ?? this.#present!, 500);
  }

  refuse(): void {
    this.#answer(this.#present!, 400);
  }

  wayBack(): Http1Request {
    return this.#present!;
  }

  hold(): void {
    this.#host.held.tell(this, this.held);
  }

  flush(): void {
    this.hold();
    if (this.pending.size < this.#host.limits.pipelined) this.#socket.resume();
  }

  #answer(request: Http1Request, status: number, body: Buffer | null = null): void {
    const { response } = request;
    if (response.destroyed || response.writableEnded) return;
    this.#host.counters.response(status);
    response.statusCode = status;
    response.setHeader('content-length', body?.length ?? 0);
    if (this.#ended) response.setHeader('connection', 'close');
    this.#hold(request, body?.length ?? 0);
    response.end(body ?? undefined);
  }

  #over(request: Http1Request): void {
    this.#hold(request, -request.held);
    this.#requests.delete(request);
    if (this.#ended && this.#requests.size === 0) this.#socket.destroySoon();
  }

  #hold(request: Http1Request, bytes: number): void {
    if (bytes === 0) return;
    request.held += bytes;
    this.#held += bytes;
    this.#host.held.tell(this, this.held);
  }
}
