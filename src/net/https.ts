import { isLater } from '../base/maybe.ts';
import { builtins } from '../base/builtins.ts';
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from 'node:http2';
import type { Server, Socket } from 'node:net';

import { parseAddress } from '../base/ip.ts';
import { Query } from '../wire/query.ts';
import { silence, type Reply } from '../wire/reply.ts';
import { stamp } from '../wire/stamp.ts';
import { HeldBytes } from './held-bytes.ts';
import { HttpsConnection, type HttpsHost, type HttpsPeer } from './https-connection.ts';
import { leastTtl } from './least-ttl.ts';
import {
  makeCounters,
  type Endpoint,
  type Listener,
  type ListenerParts,
  type ListenerCounters,
  type StreamLimits,
} from './listener.ts';
import { plainAddress } from './stream-connection.ts';
import { closeServer, HELD_MAX, listen } from './stream-listener.ts';
import { TimerWheel } from './timer-wheel.ts';
import { withCertificate } from './tls.ts';
import { REPLY_ROOM, writeFailure } from './write-reply.ts';

const PATH = '/dns-query';
const MEDIA_TYPE = 'application/dns-message';
const MESSAGE_MAX = 65_535;
const STREAMS_MAX = 250;
/** How late a connection's time limit may be met. */
const TICK_MS = 100;
/** Base64url without padding; longer ones cannot be a message. */
const ENCODED = /^[A-Za-z0-9_-]{1,87382}$/;

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

interface Exchange {
  readonly request: Request;
  readonly response: Response;
  readonly connection: HttpsConnection;
}

const arena = Buffer.allocUnsafeSlow(REPLY_ROOM);

/**
 * DNS over HTTPS (RFC 8484) at one address: HTTP/2 and HTTP/1.1 with a certificate, plain HTTP/1.1 without (behind a proxy
 * that ends TLS). When all connections are taken new ones are turned away.
 */
export function httpsListener(parts: ListenerParts): Listener {
  return new HttpsListener(parts);
}

class HttpsListener implements Listener {
  readonly endpoint: Endpoint;
  readonly counters: ListenerCounters;
  readonly #parts: ListenerParts;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #host: HttpsHost;
  /** By session, and by socket for HTTP/1.1. */
  readonly #connections = new WeakMap<object, HttpsConnection>();
  readonly #query = new Query();
  #port: number;
  #closing = false;
  #inFlight = 0;
  #onQuiet: (() => void) | null = null;

  constructor(parts: ListenerParts) {
    this.#parts = parts;
    this.endpoint = parts.endpoint;
    this.#port = parts.endpoint.port;
    this.counters = parts.counters ?? makeCounters();
    const { counters } = this;
    this.#host = {
      counters,
      limits: parts.limits,
      wheel: new TimerWheel(parts.clock, TICK_MS),
      heldBytes: new HeldBytes(HELD_MAX, () => counters.evicted++),
    };
    this.#server = parts.tls === null ? this.#plain() : this.#secure();
    this.#server.maxConnections = parts.limits.maxConnections;
    this.#server.on('connection', this.#onConnection);
    this.#server.on('drop', () => this.counters.evicted++);
  }

  get port(): number {
    return this.#port;
  }

  async open(): Promise<void> {
    this.#port = await listen(this.#server, this.endpoint);
    this.#server.on('error', (error) => this.#parts.log.error(`https listener: ${error.message}`));
  }

  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    const closed = closeServer(this.#server);
    for (const session of this.#sessions) session.close();
    if (this.#inFlight > 0) await this.#quiet(graceMs);
    // What has been written still has to leave: one turn, then the end.
    await new Promise((resolve) => setImmediate(resolve));
    for (const socket of this.#sockets) socket.destroySoon();
    const timer = this.#parts.clock.after(Math.min(graceMs, 1000), () => {
      for (const socket of this.#sockets) socket.destroy();
    });
    await closed;
    timer.cancel();
    this.#host.wheel.stop();
  }

  #plain(): Server {
    const { limits } = this.#parts;
    const server = builtins.http().createServer(http1Options(limits), this.#onRequest);
    server.setTimeout(limits.idleTimeoutMs);
    return server;
  }

  #secure(): Server {
    const { limits } = this.#parts;
    const server = withCertificate(this.#parts, (options) =>
      builtins.http2().createSecureServer(
        {
          ...options,
          ...http1Options(limits),
          allowHTTP1: true,
          handshakeTimeout: limits.readTimeoutMs,
          settings: { maxConcurrentStreams: STREAMS_MAX },
        },
        this.#onRequest,
      ),
    );
    server.setTimeout(limits.idleTimeoutMs);
    server.on('session', (session) => {
      this.#sessions.add(session);
      const connection = this.#connect(session, {
        finish: () => session.close(),
        destroy: () => session.destroy(),
      });
      session.on('error', () => session.destroy());
      session.on('close', () => {
        this.#sessions.delete(session);
        connection.closed();
      });
    });
    return server;
  }

  #connect(key: object, peer: HttpsPeer): HttpsConnection {
    const connection = new HttpsConnection(this.#host, peer);
    this.#connections.set(key, connection);
    return connection;
  }

  /** The connection that a request came by; null if it is gone already. */
  #connectionOf(request: Request): HttpsConnection | null {
    if ('stream' in request) {
      const { session } = request.stream;
      return session === undefined ? null : (this.#connections.get(session) ?? null);
    }
    const { socket } = request;
    const known = this.#connections.get(socket);
    if (known !== undefined || socket.destroyed) return known ?? null;
    const connection = this.#connect(socket, {
      finish: () => socket.destroySoon(),
      destroy: () => socket.destroy(),
    });
    socket.on('close', () => connection.closed());
    return connection;
  }

  #onConnection = (socket: Socket): void => {
    this.counters.accepted++;
    this.counters.connections++;
    this.#sockets.add(socket);
    socket.on('close', () => {
      this.counters.connections--;
      this.#sockets.delete(socket);
    });
    socket.on('error', () => socket.destroy());
  };

  #onRequest = (request: Request, response: Response): void => {
    response.on('error', () => {});
    request.on('error', () => {});
    const url = request.url ?? '';
    const mark = url.indexOf('?');
    if ((mark < 0 ? url : url.slice(0, mark)) !== PATH) return refuse(response, 404);
    if (this.#closing) return refuse(response, 503);
    const connection = this.#connectionOf(request);
    if (connection === null) return;
    if (request.method === 'GET') {
      connection.asked();
      const message = encodedMessage(mark < 0 ? '' : url.slice(mark + 1));
      if (message === null) refuse(response, 400);
      else this.#serve(message, { request, response, connection });
    } else if (request.method === 'POST') {
      this.#readBody({ request, response, connection });
    } else {
      refuse(response, 400);
    }
  };

  #readBody(exchange: Exchange): void {
    const { request, response, connection } = exchange;
    const chunks: Buffer[] = [];
    let size = 0;
    let held = 0;
    let over = false;
    const timer = this.#parts.clock.after(this.#parts.limits.readTimeoutMs, () => {
      this.counters.timedOut++;
      finish();
      if ('stream' in request) request.stream.close(builtins.http2().constants.NGHTTP2_CANCEL);
      else request.destroy();
    });
    const finish = (): void => {
      over = true;
      timer.cancel();
      if (held > 0) connection.hold(-held);
      held = 0;
    };
    request.on('close', () => {
      if (!over) finish();
    });
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (over) return;
      if (size > MESSAGE_MAX) {
        // The rest is heard in silence, for as long as a body may take.
        if (held > 0) connection.hold(-held);
        held = 0;
        chunks.length = 0;
        if (size - chunk.length <= MESSAGE_MAX) refuse(response, 400);
        return;
      }
      chunks.push(chunk);
      held += chunk.length;
      connection.hold(chunk.length);
    });
    request.on('end', () => {
      if (over) return;
      finish();
      if (size > MESSAGE_MAX) return;
      connection.asked();
      this.#serve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), exchange);
    });
  }

  #serve(message: Buffer, exchange: Exchange): void {
    const { request, response } = exchange;
    const { serve, clock, log } = this.#parts;
    this.counters.received++;
    const query = this.#query;
    if (query.read(message, 0, message.length) !== 'serve') {
      this.counters.rejected++;
      return refuse(response, 400);
    }
    const { socket } = request;
    query.proto = 'https';
    query.peer = parseAddress(plainAddress(socket.remoteAddress)) ?? new Uint8Array(4);
    query.family = query.peer.length === 4 ? 4 : 6;
    query.peerAt = 0;
    query.peerPort = socket.remotePort ?? 0;
    query.local = plainAddress(socket.localAddress);
    query.localPort = this.#port;
    query.arrived = clock.now();
    let reply;
    try {
      reply = serve(query);
    } catch (error) {
      log.error(`https listener: ${String(error)}`);
      return this.#reply(query, null, exchange);
    }
    if (!isLater(reply)) return this.#reply(query, reply, exchange);
    void this.#later(query.keep(), reply, exchange);
  }

  async #later(query: Query, promise: PromiseLike<Reply>, exchange: Exchange): Promise<void> {
    this.#inFlight++;
    let reply: Reply | null = null;
    try {
      reply = await promise;
    } catch (error) {
      this.#parts.log.error(`https listener: ${String(error)}`);
    }
    this.#reply(query, reply, exchange);
    if (--this.#inFlight === 0) this.#onQuiet?.();
  }

  #reply(query: Query, reply: Reply | null, { response, connection }: Exchange): void {
    if (response.destroyed || response.writableEnded) {
      this.counters.dropped++;
      return;
    }
    if (reply === silence) return refuse(response, 500);
    const length = reply === null ? writeFailure(query, arena, 0) : stamp(reply, query, arena, 0);
    const body = Buffer.allocUnsafe(length);
    arena.copy(body, 0, 0, length);
    response.statusCode = 200;
    response.setHeader('content-type', MEDIA_TYPE);
    response.setHeader('content-length', length);
    response.setHeader('cache-control', `max-age=${leastTtl(body)}`);
    response.end(body);
    this.counters.sent++;
    connection.hold(length);
    response.on('close', () => connection.hold(-length));
  }

  #quiet(graceMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#parts.clock.after(graceMs, resolve);
      this.#onQuiet = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}

/** Slow and silent clients of HTTP/1.1 are looked for once a second. */
function http1Options({ readTimeoutMs, idleTimeoutMs }: StreamLimits): ServerOptions {
  return {
    headersTimeout: readTimeoutMs,
    requestTimeout: readTimeoutMs,
    keepAliveTimeout: idleTimeoutMs,
    connectionsCheckingInterval: 1000,
  };
}

/** The message of `dns=`, which must be there exactly once; null if it is not. */
function encodedMessage(search: string): Buffer | null {
  const values = new URLSearchParams(search).getAll('dns');
  const [value = ''] = values;
  if (values.length !== 1 || !ENCODED.test(value)) return null;
  const message = Buffer.from(value, 'base64url');
  return message.length <= MESSAGE_MAX ? message : null;
}

function refuse(response: Response, status: number): void {
  if (response.destroyed || response.writableEnded) return;
  response.statusCode = status;
  response.setHeader('content-length', 0);
  response.end();
}
