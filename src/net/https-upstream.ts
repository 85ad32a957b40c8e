import { builtins } from '../base/builtins.ts';
import type { ClientHttp2Session } from 'node:http2';
import type { Agent } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';

import type { Query } from '../wire/query.ts';
import { printHostPort } from './address.ts';
import { DialTime } from './dial-time.ts';
import { exchangeError, failLater, timeoutError } from './exchange-failure.ts';
import { type Exchange, ExchangeError } from './exchange.ts';
import { matchReply, writeQuery } from './match-reply.ts';
import { type Upstream, type UpstreamParts } from './network.ts';
import { Timed, type TimerWheel } from './timer-wheel.ts';
import { tlsOptions } from './upstream-tls.ts';

const PATH = '/dns-query';
const MEDIA_TYPE = 'application/dns-message';
const MESSAGE_MAX = 65_535;
/** How Go's HTTP client says that the time is up. */
const LATE = 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';
/** Requests that may wait at a time. */
const MAX_IN_FLIGHT = 4096;

export interface HttpsUpstreamParts {
  readonly upstream: UpstreamParts;
  readonly wheel: TimerWheel;
  readonly now: () => number;
}

interface Connected {
  readonly session: ClientHttp2Session | null;
  readonly reused: boolean;
}

/**
 * One upstream over HTTPS (RFC 8484): one HTTP/2 connection that carries all queries, or HTTP/1.1 connections with a server
 * that chooses that. Queries go out with id 0, so that HTTP caches can do their work.
 */
export class HttpsUpstream implements Upstream {
  readonly parts: UpstreamParts;
  readonly #parts: HttpsUpstreamParts;
  readonly #authority: string;
  readonly #dialTime = new DialTime();
  #session: ClientHttp2Session | null = null;
  #sessionBornAt = 0;
  #dialling: Promise<ClientHttp2Session | null> | null = null;
  /** Set once the server has chosen HTTP/1.1. */
  #agent: Agent | null = null;
  #inFlight = 0;
  #closed = false;

  constructor(parts: HttpsUpstreamParts) {
    this.parts = parts.upstream;
    this.#parts = parts;
    const { host, port, serverName } = this.parts.address;
    const name = serverName === '' ? host : serverName;
    this.#authority = port === 443 && !name.includes(':') ? name : printHostPort(name, port);
  }

  start(exchange: Exchange, timeoutMs: number, now: number): void {
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      const error = new ExchangeError('local', `${this.#action}: too many queries in flight`);
      return failLater(exchange, error, this.#parts.now);
    }
    this.#exchange(exchange.query, now + timeoutMs).then(
      ({ bytes, reused }) =>
        exchange.replied(bytes, 0, bytes.length, false, reused, this.#parts.now()),
      (error: ExchangeError) => exchange.failed(error, this.#parts.now()),
    );
  }

  /** Rejects with ExchangeError. */
  async #exchange(
    query: Query,
    deadline: number,
  ): Promise<{ readonly bytes: Buffer; readonly reused: boolean }> {
    const { now } = this.#parts;
    this.#inFlight++;
    try {
      for (;;) {
        const { session, reused } = await this.#connected(deadline);
        try {
          return { bytes: await this.#ask(session, query, Math.max(0, deadline - now())), reused };
        } catch (error) {
          const closed = error instanceof ExchangeError && error.failure === 'closed';
          if (!closed || !reused || session === null) throw error;
          if (this.#session === session) this.#drop();
        }
      }
    } catch (error) {
      const known = exchangeError(error, 'read', this.#where);
      if (known.failure === 'timeout') this.parts.counters.timeouts.add(1);
      throw known;
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) this.#session?.unref();
    }
  }

  close(): void {
    this.#closed = true;
    this.#drop();
    this.#agent?.destroy();
  }

  get #where(): string {
    const { host, port } = this.parts.address;
    return `tcp ${printHostPort(host, port)}`;
  }

  /** What Go's HTTP client begins its errors with. */
  get #action(): string {
    return `${this.parts.httpMethod === 'POST' ? 'Post' : 'Get'} "https://${this.#authority}${PATH}"`;
  }

  /** The error of a connection that could not be made. */
  #undialled(cause: unknown): ExchangeError {
    const { failure, message } = exchangeError(cause, 'dial', this.#where);
    const error = new ExchangeError(failure, `${this.#action}: ${message}`);
    error.cause = cause;
    return error;
  }

  #drop(): void {
    this.#session?.close();
    this.#session = null;
  }

  async #connected(deadline: number): Promise<Connected> {
    if (this.#closed) throw new ExchangeError('local', `${this.#action}: closed`);
    if (this.#agent !== null) return { session: null, reused: true };
    const { maxAgeMs } = this.parts;
    if (maxAgeMs > 0 && this.#parts.now() - this.#sessionBornAt >= maxAgeMs) this.#drop();
    if (this.#session !== null && !this.#session.closed && !this.#session.destroyed) {
      this.#session.ref();
      return { session: this.#session, reused: true };
    }
    // Queries that come while the connection is being made share it.
    this.#dialling ??= this.#dial().finally(() => {
      this.#dialling = null;
    });
    const dialling = this.#dialling;
    const session = await new Deadline(this.#parts.wheel, deadline - this.#parts.now()).limit(
      dialling,
      () => this.#undialled(timeoutError('dial', this.#where)),
    );
    return { session, reused: false };
  }

  /** @returns the session; null if the server speaks HTTP/1.1 only */
  async #dial(): Promise<ClientHttp2Session | null> {
    const { now, wheel } = this.#parts;
    const { address, source, expireMs } = this.parts;
    const began = now();
    const socket = builtins.tls().connect({
      host: address.host,
      port: address.port,
      ...tlsOptions(this.parts),
      ALPNProtocols: ['h2', 'http/1.1'],
      ...(source !== '' && { localAddress: source }),
    });
    try {
      await new Deadline(wheel, this.#dialTime.limitMs).limit(secured(socket), () =>
        timeoutError('dial', this.#where),
      );
    } catch (error) {
      socket.destroy();
      throw this.#undialled(error);
    } finally {
      this.#dialTime.learn(now() - began);
    }
    if (this.#closed) {
      socket.destroy();
      throw new ExchangeError('local', `${this.#action}: closed`);
    }
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy();
      this.#agent = new (builtins.https().Agent)({
        keepAlive: true,
        timeout: expireMs,
        maxFreeSockets: this.parts.maxIdle > 0 ? this.parts.maxIdle : 64,
      });
      return null;
    }
    const session = builtins.http2().connect(`https://${this.#authority}`, {
      createConnection: () => socket,
      settings: { enablePush: false },
    });
    const { sockets } = this.parts.counters;
    sockets.add(1);
    session.setTimeout(expireMs, () => session.close());
    session.on('error', () => session.destroy());
    session.on('goaway', () => session.close());
    session.on('close', () => {
      sockets.add(-1);
      if (this.#session === session) this.#session = null;
    });
    this.#session = session;
    this.#sessionBornAt = began;
    return session;
  }

  async #ask(session: ClientHttp2Session | null, query: Query, timeoutMs: number): Promise<Buffer> {
    const message = Buffer.allocUnsafe(query.end - query.start);
    writeQuery(query, 0, message, 0);
    const post = this.parts.httpMethod === 'POST';
    const path = post ? PATH : `${PATH}?dns=${message.toString('base64url')}`;
    const action = this.#action;
    const deadline = new Deadline(this.#parts.wheel, timeoutMs);
    const body = post ? message : null;
    const bytes = await deadline.limit(
      session === null
        ? this.#overHttp1(path, body, action, deadline)
        : overHttp2(session, this.#authority, path, body, action, deadline),
      () => new ExchangeError('timeout', `${action}: ${LATE}`),
    );
    // Some servers do not send 0 back; what counts here is TLS.
    const id = bytes.length >= 2 ? bytes.readUInt16BE(0) : 0;
    if (matchReply(query, id, bytes, 0, bytes.length) !== 'reply') {
      throw new ExchangeError('http', `${action}: the body is no reply to the query`);
    }
    return bytes;
  }

  #overHttp1(
    path: string,
    body: Buffer | null,
    action: string,
    deadline: Deadline,
  ): Promise<Buffer> {
    const { address, source } = this.parts;
    return new Promise((resolve, reject) => {
      const asked = builtins.https().request(
        {
          agent: this.#agent!,
          host: address.host,
          port: address.port,
          path,
          method: body === null ? 'GET' : 'POST',
          ...tlsOptions(this.parts),
          ...(source !== '' && { localAddress: source }),
          headers: {
            host: this.#authority,
            accept: MEDIA_TYPE,
            ...(body !== null && { 'content-type': MEDIA_TYPE, 'content-length': body.length }),
          },
        },
        (response: IncomingMessage) => {
          if (response.statusCode !== 200) {
            response.resume();
            reject(statusError(action, response.statusCode));
            return;
          }
          collect(response, action).then(resolve, reject);
        },
      );
      asked.on('error', (error) => reject(brokenError(error, action)));
      deadline.onLate = () => asked.destroy();
      asked.end(body ?? undefined);
    });
  }
}

function overHttp2(
  session: ClientHttp2Session,
  authority: string,
  path: string,
  body: Buffer | null,
  action: string,
  deadline: Deadline,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (session.closed || session.destroyed) {
      reject(new ExchangeError('closed', `${action}: EOF`));
      return;
    }
    const stream = session.request({
      ':method': body === null ? 'GET' : 'POST',
      ':authority': authority,
      ':path': path,
      accept: MEDIA_TYPE,
      ...(body !== null && { 'content-type': MEDIA_TYPE, 'content-length': body.length }),
    });
    deadline.onLate = () => stream.close(builtins.http2().constants.NGHTTP2_CANCEL);
    stream.on('error', (error) => reject(closedError(error, action)));
    stream.on('close', () => reject(new ExchangeError('closed', `${action}: EOF`)));
    stream.on('response', (headers) => {
      const status = headers[':status'];
      if (status === 200) {
        collect(stream, action).then(resolve, reject);
        return;
      }
      stream.resume();
      reject(statusError(action, status));
    });
    stream.end(body ?? undefined);
  });
}

/** A stream that ends because its connection does is a closed connection, whatever HTTP/2 calls it. */
function closedError(error: Error, action: string): ExchangeError {
  const code = 'code' in error ? error.code : '';
  const gone = typeof code === 'string' && code.startsWith('ERR_HTTP2');
  return gone ? new ExchangeError('closed', `${action}: EOF`) : brokenError(error, action);
}

/** The connection failed during a request. */
function brokenError(cause: unknown, action: string): ExchangeError {
  if (cause instanceof ExchangeError) return cause;
  const { failure, message } = exchangeError(cause, 'read', 'tcp');
  const error = new ExchangeError(failure, `${action}: ${message}`);
  error.cause = cause;
  return error;
}

function statusError(action: string, status: number | undefined): ExchangeError {
  return new ExchangeError('http', `${action}: HTTP status ${status ?? 'missing'}`);
}

/** The whole body; fails if it is longer than a DNS message can be. */
async function collect(body: AsyncIterable<Buffer>, action: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      size += chunk.length;
      if (size > MESSAGE_MAX) throw new ExchangeError('http', `${action}: the body is too long`);
      chunks.push(chunk);
    }
  } catch (error) {
    throw brokenError(error, action);
  }
  return Buffer.concat(chunks);
}

function secured(socket: TLSSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('secureConnect', () => {
      socket.off('error', reject);
      resolve();
    });
    socket.once('error', reject);
    socket.once('end', () => reject(new ExchangeError('closed', 'EOF')));
  });
}

/** An end to waiting for a promise. */
class Deadline extends Timed {
  readonly #wheel: TimerWheel;
  readonly #delayMs: number;
  #late: (() => void) | null = null;
  /** What to give up when the time has passed. */
  onLate: (() => void) | null = null;

  constructor(wheel: TimerWheel, delayMs: number) {
    super();
    this.#wheel = wheel;
    this.#delayMs = Math.max(0, delayMs);
  }

  async limit<T>(promise: Promise<T>, late: () => ExchangeError): Promise<T> {
    const timeout = new Promise<never>((_, reject) => {
      this.#late = () => reject(late());
    });
    this.#wheel.set(this, this.#delayMs);
    try {
      return await Promise.race([promise, timeout]);
    } finally {
      this.#wheel.cancel(this);
    }
  }

  override expire(): void {
    this.#late?.();
    this.onLate?.();
  }
}
