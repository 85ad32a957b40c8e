import { builtins } from '../../base/builtins.ts';
import type { Gunzip } from 'node:zlib';
import { type Clock, type Timer } from '../../base/clock.ts';
import type { ApiConnection } from './connection.ts';
import { ApiFailure, connectionFailure, statusFailure, type FailureKind } from './failure.ts';
import { ReplyReader, type ReplyHead } from './http1.ts';
import { requestGate, type RequestLimits } from './request-gate.ts';
import { Sockets, type PooledSocket, type SocketAddress } from './sockets.ts';
import type { WorkShare } from './work-share.ts';
import { MalformedStream, type JsonStream } from '../store/json-stream.ts';

/** Sends requests to one API server and processes the replies as they stream in. */
export interface ApiClient {
  /** Streams a reply into `request.into` and resolves at its end. Rejects with an `ApiFailure`, or when aborted. */
  stream(request: ApiRequest): Promise<void>;
  /** `host:port`, for log lines and metrics. */
  readonly host: string;
  close(): void;
}

/** The body of a modifying request. */
export interface ApiChange {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `application/json`, or a patch type. */
  readonly contentType: string;
  /** JSON; empty: none. */
  readonly body: string;
}

/** A request; GET unless there is a change. */
export interface ApiRequest {
  readonly change?: ApiChange;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Additional headers, for requests that the API server forwards (`pods/proxy`). */
  readonly headers?: Readonly<Record<string, string>>;
  readonly into: JsonStream;
  /** The request's purpose, e.g. `list services`, used in log lines. */
  readonly task: string;
  /** Maximum time to wait for the reply's first byte, in milliseconds. */
  readonly answerMs: number;
  /** Returns the maximum pause within the reply, in milliseconds. Called again after each chunk. */
  silenceMs(): number;
  /**
   * True for a watch. Watches are never compressed, because that would delay events, and are not counted in request
   * durations.
   */
  readonly watch: boolean;
  /**
   * Returns true if an earlier state is being served, in which case reading this reply may yield CPU time to other
   * work. Called after each chunk.
   */
  unhurried?(): boolean;
  /** Returns the milliseconds to wait before reading more. Called after each chunk. */
  restMs?(): number;
  readonly signal: AbortSignal;
  /** Called once, when a successful reply begins. */
  began?(): void;
}

/** Receives the values for the `rest_client` metrics, whose labels are the same as client-go's. */
export interface RestHooks {
  /** Called when a request has been answered. `code` is the status, or `<error>` if there was none. */
  requested?(labels: { method: string; host: string; code: string }): void;
  /** Duration of a request that is not a watch, in seconds. */
  took?(labels: { verb: string; host: string }, seconds: number): void;
  /** Delay added to a request by the rate limit, in seconds. */
  heldBack?(labels: { verb: string; host: string }, seconds: number): void;
}

export interface ClientParts {
  readonly connection: ApiConnection;
  readonly clock: Clock;
  /** Additional addresses of the server, used when the one in the URL is unreachable. */
  readonly others?: () => readonly SocketAddress[];
  readonly userAgent: string;
  readonly hooks?: RestHooks;
  readonly limits?: RequestLimits;
  /** Limits the share of CPU time spent on work that is not urgent. If absent, there is no limit. */
  readonly share?: WorkShare;
}

/** The user agent of ndots commands, as seen in the API server's audit log. */
export function userAgent(version: string): string {
  return `ndots/${version} (${process.platform}/${process.arch})`;
}

/** Maximum size of an error's body in bytes. A Status takes a few hundred. */
const ERROR_BODY_BYTES = 64 * 1024;

/** Creates a client that keeps connections open between requests. */
export function apiClient(parts: ClientParts): ApiClient {
  const { connection, clock } = parts;
  const { url } = connection;
  const hooks = parts.hooks ?? {};
  const gate = requestGate(clock, parts.limits ?? { perSecond: 0, burst: 0, inFlight: 0 });
  const { host } = url;
  const base = url.pathname.replace(/\/$/, '');
  const sockets = new Sockets({
    address: {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
    },
    others: parts.others ?? (() => []),
    clock,
  });

  const send = async (request: ApiRequest): Promise<void> => {
    const access = await connection.access();
    request.signal.throwIfAborted();
    const query = new URLSearchParams(request.query).toString();
    const text = requestText(
      `${base}${request.path}${query === '' ? '' : `?${query}`}`,
      {
        host,
        accept: 'application/json',
        'accept-encoding': request.watch ? 'identity' : 'gzip',
        'user-agent': parts.userAgent,
        ...access.headers,
        ...request.headers,
      },
      request.change,
    );
    let unreachable: ApiFailure | null = null;
    for (let [fresh, untried] = [false, sockets.addresses]; ; fresh = true) {
      const pooled = sockets.take(access.tls, fresh);
      const reply = new StreamedReply({ request, pooled, clock, host, share: parts.share ?? null });
      try {
        await reply.run(text);
        if (reply.reusable) sockets.give(pooled, access.tls);
        else pooled.socket.destroy();
        return;
      } catch (error) {
        pooled.socket.destroy();
        // The server may close an idle connection at any moment. The request is therefore sent again, unless it
        // modifies something.
        const broke = error instanceof ApiFailure && error.kind === 'network';
        if (broke && !pooled.established) {
          // Nothing was sent, so the next address is tried right away. The first error is the one reported.
          unreachable ??= error;
          if (--untried > 0) continue;
          throw unreachable;
        }
        const again = request.change === undefined || request.change.method === 'PUT';
        if (again && broke && reply.unanswered && pooled.used && !fresh) continue;
        throw error;
      } finally {
        if (reply.status !== 0) count(methodOf(request), String(reply.status));
      }
    }
  };

  const count = (method: string, code: string): void => hooks.requested?.({ method, host, code });

  return {
    host,
    async stream(request) {
      const heldMs = await gate.enter(request.watch, request.signal);
      const started = clock.now();
      try {
        hooks.heldBack?.({ verb: methodOf(request), host }, heldMs / 1000);
        request.signal.throwIfAborted();
        await send(request);
      } catch (error) {
        if (error instanceof ApiFailure) {
          if (error.kind === 'unauthorized') connection.refused();
          if (withoutStatus.includes(error.kind)) count(methodOf(request), '<error>');
        }
        throw error;
      } finally {
        if (!request.watch)
          hooks.took?.({ verb: methodOf(request), host }, (clock.now() - started) / 1000);
        gate.leave(request.watch);
      }
    },
    close: () => sockets.close(),
  };
}

const methodOf = ({ change }: ApiRequest): string => change?.method ?? 'GET';
const isFine = (status: number): boolean => status >= 200 && status < 300;
const withoutStatus: readonly FailureKind[] = ['network', 'tls', 'silent'];

/** A request on one connection, whose reply is processed as it arrives. */
class StreamedReply {
  readonly #request: ApiRequest;
  readonly #pooled: PooledSocket;
  readonly #clock: Clock;
  readonly #host: string;
  readonly #share: WorkShare | null;
  readonly #reader: ReplyReader;
  readonly #settled: Promise<void>;
  #resolve!: () => void;
  #reject!: (error: unknown) => void;
  #timer: Timer | null = null;
  #head: ReplyHead | null = null;
  #gunzip: Gunzip | null = null;
  #errorBody: Buffer[] = [];
  #errorBytes = 0;

  constructor(parts: {
    request: ApiRequest;
    pooled: PooledSocket;
    clock: Clock;
    host: string;
    share: WorkShare | null;
  }) {
    this.#request = parts.request;
    this.#share = parts.share;
    this.#pooled = parts.pooled;
    this.#clock = parts.clock;
    this.#host = parts.host;
    this.#settled = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#reader = new ReplyReader({
      head: (head) => this.#begin(head),
      body: (piece) => this.#body(piece),
      end: () => this.#end(),
    });
  }

  /** The reply's status; 0 before it arrives. */
  get status(): number {
    return this.#head?.status ?? 0;
  }

  get unanswered(): boolean {
    return this.#reader.untouched;
  }

  get reusable(): boolean {
    return this.#reader.done && this.#reader.reusable;
  }

  async run(text: string): Promise<void> {
    const { signal } = this.#request;
    const { socket } = this.#pooled;
    const abort = (): void => this.#reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    socket.ref();
    const failed = (error: Error): void => this.#reject(connectionFailure(error, this.#host));
    const closed = (): void => this.#closed();
    socket.on('error', failed);
    socket.on('close', closed);
    this.#pooled.taker = (piece) => this.#take(piece);
    this.#expect(this.#request.answerMs);
    try {
      socket.write(text, 'utf8');
      await this.#settled;
    } catch (error) {
      if (!(error instanceof MalformedStream)) throw error;
      throw new ApiFailure({
        kind: 'malformed',
        text: `the API server at ${this.#host} sent an unexpected reply to "${this.#request.task}": ${error.message}`,
        cause: error,
      });
    } finally {
      this.#timer?.cancel();
      this.#pooled.taker = null;
      socket.off('error', failed);
      socket.off('close', closed);
      this.#gunzip?.destroy();
      signal.removeEventListener('abort', abort);
    }
  }

  #take(piece: Buffer): boolean {
    try {
      this.#reader.push(piece);
      if (this.#head !== null && !this.#reader.done) this.#expect(this.#request.silenceMs());
    } catch (error) {
      this.#reject(error);
    }
    if (this.#gunzip !== null) return !this.#gunzip.writableNeedDrain;
    const { socket } = this.#pooled;
    return !this.#rests(() => socket.resume());
  }

  /**
   * Returns true if reading must pause now. `goOn` is called after the pause, even if the exchange has ended in the
   * meantime.
   */
  #rests(goOn: () => void): boolean {
    const ownMs = this.#request.restMs?.() ?? 0;
    const shares = this.#share !== null && this.#request.unhurried?.() === true;
    const restMs = Math.max(ownMs, shares ? this.#share.restMs() : 0);
    if (restMs > 0) this.#clock.after(restMs, goOn);
    return restMs > 0;
  }

  #begin(head: ReplyHead): void {
    this.#head = head;
    if (head.fields.get('content-encoding') === 'gzip') this.#inflate();
    if (isFine(head.status)) this.#request.began?.();
  }

  #inflate(): void {
    const gunzip = builtins.zlib().createGunzip();
    this.#gunzip = gunzip;
    gunzip.on('data', (piece: Buffer) => {
      try {
        this.#consume(piece);
        if (this.#rests(() => gunzip.resume())) gunzip.pause();
      } catch (error) {
        this.#reject(error);
      }
    });
    gunzip.on('end', () => this.#finish());
    gunzip.on('error', (error) => this.#reject(new MalformedStream(error.message)));
    gunzip.on('drain', () => this.#pooled.socket.resume());
  }

  #body(piece: Buffer): void {
    // Decompression runs in another thread and needs its own copy of the bytes.
    if (this.#gunzip !== null) this.#gunzip.write(Buffer.from(piece));
    else this.#consume(piece);
  }

  #consume(piece: Buffer): void {
    if (isFine(this.status)) {
      this.#request.into.push(piece);
    } else if (this.#errorBytes < ERROR_BODY_BYTES) {
      this.#errorBytes += piece.length;
      this.#errorBody.push(Buffer.from(piece));
    }
  }

  #end(): void {
    if (this.#gunzip !== null) this.#gunzip.end();
    else this.#finish();
  }

  #finish(): void {
    if (isFine(this.status)) this.#resolve();
    else this.#reject(this.#refusal());
  }

  #closed(): void {
    if (this.#reader.close()) return;
    this.#reject(connectionFailure({ code: 'ECONNRESET' }, this.#host));
  }

  #refusal(): ApiFailure {
    let body: unknown = null;
    try {
      body = JSON.parse(Buffer.concat(this.#errorBody).toString('utf8'));
    } catch {
      // This is a proxy's error page rather than a Status, so only the code is used.
    }
    return statusFailure({
      status: this.status,
      body,
      task: this.#request.task,
      retryAfterMs: retryAfter(this.#head?.fields.get('retry-after'), this.#clock),
    });
  }

  #expect(withinMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(withinMs, () => {
      this.#reject(
        new ApiFailure({
          kind: 'silent',
          text: `the API server at ${this.#host} sent nothing for ${Math.round(withinMs / 1000)}s for "${this.#request.task}"`,
        }),
      );
    });
  }
}

/** Formats a request's head and body. */
function requestText(
  target: string,
  fields: Readonly<Record<string, string | readonly string[]>>,
  change: ApiChange | undefined,
): string {
  const lines = [`${change?.method ?? 'GET'} ${target} HTTP/1.1`];
  const body = change?.body ?? '';
  const about =
    change === undefined
      ? {}
      : { 'content-type': change.contentType, 'content-length': String(Buffer.byteLength(body)) };
  const all = Object.entries({ ...fields, ...about }).flatMap(([name, values]) =>
    [values].flat().map((value) => [name, value] as const),
  );
  for (const [name, value] of all) {
    // A line break in a token would inject headers or even another request.
    if (/[\r\n\0]/.test(value)) {
      throw new ApiFailure({ kind: 'credentials', text: `the ${name} contains a line end` });
    }
    lines.push(`${name}: ${value}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** Converts `Retry-After`, in either of its forms, to milliseconds. Returns null if it is absent. */
function retryAfter(header: string | undefined, clock: Clock): number | null {
  if (header === undefined) return null;
  if (/^\d+$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, date - clock.wall());
}
