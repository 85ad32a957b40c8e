import http from 'node:http';
import https from 'node:https';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { sleep, type Clock, type Timer } from '../base/clock.ts';
import type { Connection, TlsMaterial } from './connection.ts';
import { ApiFailure, connectionFailure, statusFailure } from './failure.ts';
import { MalformedStream, type Splitter } from './split.ts';

/** GET requests to one API server, whose replies are consumed as they stream in. */
export interface ApiClient {
  /** Streams a reply into `request.into`; settles when it ended. Rejects with an `ApiFailure`, or when aborted. */
  stream(request: ApiRequest): Promise<void>;
  /** `host:port`, for log lines and metrics. */
  readonly host: string;
  close(): void;
}

export interface ApiRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly into: Splitter;
  /** What this is for, e.g. `list services`; stands in log lines. */
  readonly task: string;
  /** Longest wait for the first byte of the reply, milliseconds. */
  readonly answerMs: number;
  /** Longest silence within the reply, milliseconds; asked anew after each chunk. */
  silenceMs(): number;
  /** A watch: never compressed (that would hold events back), and its length says nothing about speed. */
  readonly watch: boolean;
  readonly signal: AbortSignal;
  /** Called once when the reply began with status 200. */
  began?(): void;
}

/** Numbers for the `rest_client` metrics; labels as client-go has them. */
export interface RestHooks {
  /** One request was answered; `code` is the status, or `<error>` if there was none. */
  requested?(labels: { method: string; host: string; code: string }): void;
  /** How long a request (not a watch) took, seconds. */
  took?(labels: { verb: string; host: string }, seconds: number): void;
  /** How long the rate limit held a request back, seconds. */
  heldBack?(labels: { verb: string; host: string }, seconds: number): void;
}

/** Bounds a person may set on what is asked of the server; 0 = none. */
export interface RequestLimits {
  readonly perSecond: number;
  /** How many may go at once after a pause; at least 1 where `perSecond` is set. */
  readonly burst: number;
  /** Lists under way at the same time; watches do not count. */
  readonly inFlight: number;
}

export interface ClientParts {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly userAgent: string;
  readonly hooks?: RestHooks;
  readonly limits?: RequestLimits;
}

/** Dead peers are noticed by TCP itself after this long without traffic, milliseconds. */
const keepAliveMs = 30_000;
/** An error's body is a Status of a few hundred bytes. */
const errorBodyBytes = 64 * 1024;

export function apiClient(parts: ClientParts): ApiClient {
  const { connection, clock } = parts;
  const hooks = parts.hooks ?? {};
  const gate = makeGate(clock, parts.limits ?? { perSecond: 0, burst: 0, inFlight: 0 });
  const host = connection.url.host;
  const base = connection.url.pathname.replace(/\/$/, '');
  let agent: http.Agent | null = null;
  let agentTls: TlsMaterial | null = null;

  const agentFor = (tls: TlsMaterial | null): http.Agent => {
    if (agent !== null && agentTls === tls) return agent;
    // Requests under way keep their sockets; only idle ones go with the old agent.
    agent?.destroy();
    const options = { keepAlive: true, keepAliveMsecs: keepAliveMs, maxFreeSockets: 4 };
    agent = tls === null ? new http.Agent(options) : new https.Agent({ ...options, ...tls });
    agentTls = tls;
    return agent;
  };

  const send = async (request: ApiRequest): Promise<void> => {
    const access = await connection.access();
    request.signal.throwIfAborted();
    const query = new URLSearchParams(request.query).toString();
    const started = clock.now();
    const exchange = new Exchange(request, clock, host);
    const options: https.RequestOptions = {
      host: connection.url.hostname.replace(/^\[|\]$/g, ''),
      port: connection.url.port || (access.tls === null ? 80 : 443),
      path: `${base}${request.path}${query === '' ? '' : `?${query}`}`,
      method: 'GET',
      agent: agentFor(access.tls),
      headers: {
        host,
        accept: 'application/json',
        'accept-encoding': request.watch ? 'identity' : 'gzip',
        'user-agent': parts.userAgent,
        ...access.headers,
      },
    };
    const outgoing = access.tls === null ? http.request(options) : https.request(options);
    let counted = false;
    try {
      await exchange.run(outgoing, (status) => {
        counted = true;
        hooks.requested?.({ method: 'GET', host, code: String(status) });
      });
    } catch (error) {
      if (!counted && !request.signal.aborted) {
        hooks.requested?.({ method: 'GET', host, code: '<error>' });
      }
      if (error instanceof ApiFailure && error.kind === 'unauthorized') connection.refused();
      throw error;
    } finally {
      if (!request.watch) hooks.took?.({ verb: 'GET', host }, (clock.now() - started) / 1000);
    }
  };

  return {
    host,
    async stream(request) {
      const heldMs = await gate.enter(request.watch, request.signal);
      try {
        hooks.heldBack?.({ verb: 'GET', host }, heldMs / 1000);
        request.signal.throwIfAborted();
        await send(request);
      } finally {
        gate.leave(request.watch);
      }
    },
    close() {
      agent?.destroy();
      agent = null;
    },
  };
}

/** One request and its reply, with the two things node's client does not watch over: silence and abort. */
class Exchange {
  readonly #request: ApiRequest;
  readonly #clock: Clock;
  readonly #host: string;
  #timer: Timer | null = null;
  #failure: ApiFailure | null = null;
  /** Thrown by the splitter's consumer: a fault of ours, not of the connection. */
  #fault: { readonly error: unknown } | null = null;

  constructor(request: ApiRequest, clock: Clock, host: string) {
    this.#request = request;
    this.#clock = clock;
    this.#host = host;
  }

  async run(outgoing: http.ClientRequest, answered: (status: number) => void): Promise<void> {
    const { signal } = this.#request;
    const abort = (): void => void outgoing.destroy(new Error('stopped'));
    signal.addEventListener('abort', abort, { once: true });
    try {
      this.#expect(outgoing, this.#request.answerMs);
      const reply = await new Promise<http.IncomingMessage>((resolve, reject) => {
        outgoing.on('response', resolve);
        outgoing.on('error', reject);
        outgoing.end();
      });
      const status = reply.statusCode ?? 0;
      answered(status);
      if (status !== 200) throw await this.#refusal(reply, outgoing, status);
      this.#request.began?.();
      await this.#consume(reply, outgoing, this.#request.into);
    } catch (error) {
      outgoing.destroy();
      signal.throwIfAborted();
      if (this.#failure !== null) throw this.#failure;
      if (error instanceof ApiFailure) throw error;
      if (this.#fault !== null && !(error instanceof MalformedStream)) throw this.#fault.error;
      if (error instanceof MalformedStream) {
        throw new ApiFailure({
          kind: 'malformed',
          text: `the API server at ${this.#host} sent something else than was asked with "${this.#request.task}": ${error.message}`,
          cause: error,
        });
      }
      throw connectionFailure(error, this.#host);
    } finally {
      this.#timer?.cancel();
      signal.removeEventListener('abort', abort);
    }
  }

  /** Feeds the reply into `into` until it ends. */
  #consume(
    reply: http.IncomingMessage,
    outgoing: http.ClientRequest,
    into: Splitter,
  ): Promise<void> {
    let body: Readable = reply;
    if (reply.headers['content-encoding'] === 'gzip') {
      const gunzip = createGunzip();
      reply.on('error', (error) => gunzip.destroy(error));
      reply.on('aborted', () => gunzip.destroy(new Error('the connection broke within the reply')));
      body = reply.pipe(gunzip);
    }
    return new Promise((resolve, reject) => {
      this.#expect(outgoing, this.#request.silenceMs());
      body.on('data', (chunk: Buffer) => {
        try {
          into.push(chunk);
          this.#expect(outgoing, this.#request.silenceMs());
        } catch (error) {
          this.#fault = { error };
          reject(error as Error);
          outgoing.destroy();
        }
      });
      body.on('end', resolve);
      body.on('error', reject);
      body.on('close', () => reject(connectionFailure({ code: 'ECONNRESET' }, this.#host)));
    });
  }

  async #refusal(
    reply: http.IncomingMessage,
    outgoing: http.ClientRequest,
    status: number,
  ): Promise<ApiFailure> {
    const pieces: Buffer[] = [];
    let size = 0;
    await this.#consume(reply, outgoing, {
      push(chunk) {
        if (size < errorBodyBytes) pieces.push(Buffer.from(chunk));
        size += chunk.length;
      },
    }).catch(() => {});
    let body: unknown = null;
    try {
      body = JSON.parse(Buffer.concat(pieces).toString('utf8'));
    } catch {
      // A proxy's page instead of a Status; the code alone has to do.
    }
    return statusFailure({
      status,
      body,
      task: this.#request.task,
      retryAfterMs: retryAfter(reply.headers['retry-after'], this.#clock),
    });
  }

  #expect(outgoing: http.ClientRequest, withinMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(withinMs, () => {
      this.#failure = new ApiFailure({
        kind: 'silent',
        text: `the API server at ${this.#host} sent nothing for ${Math.round(withinMs / 1000)}s while asked to "${this.#request.task}"`,
      });
      outgoing.destroy(this.#failure);
    });
  }
}

/** `Retry-After` in either of its forms, milliseconds; null if there is none. */
function retryAfter(header: string | undefined, clock: Clock): number | null {
  if (header === undefined) return null;
  if (/^\d+$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, date - clock.wall());
}

interface Gate {
  /** Waits until a request may go; how long that took, milliseconds. */
  enter(watch: boolean, signal: AbortSignal): Promise<number>;
  leave(watch: boolean): void;
}

/** A token bucket for the rate, a queue for the number in flight. */
function makeGate(clock: Clock, limits: RequestLimits): Gate {
  const waiting: (() => void)[] = [];
  let inFlight = 0;
  /** When the next request may go if the bucket is empty: it fills by moving away from the past. */
  let nextAt = -Infinity;
  const slotMs = limits.perSecond > 0 ? 1000 / limits.perSecond : 0;
  const depthMs = slotMs * (Math.max(1, limits.burst) - 1);
  return {
    async enter(watch, signal) {
      const came = clock.now();
      if (slotMs > 0) {
        nextAt = Math.max(nextAt + slotMs, came - depthMs);
        const waitMs = nextAt - came;
        if (waitMs > 0) await sleep(clock, waitMs, signal);
      }
      if (!watch && limits.inFlight > 0 && inFlight >= limits.inFlight) {
        await new Promise<void>((resolve) => waiting.push(resolve));
      } else if (!watch) {
        inFlight++;
      }
      return clock.now() - came;
    },
    leave(watch) {
      if (watch) return;
      // The place goes straight to whoever waits longest.
      const next = waiting.shift();
      if (next === undefined) inFlight--;
      else next();
    },
  };
}
