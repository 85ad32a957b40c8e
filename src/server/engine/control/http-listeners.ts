/** HTTP for plugins, with one server per address that stays open across reloads. */
import { builtins } from '../../base/builtins.ts';
import type {
  IncomingMessage,
  Server as HttpServer,
  ServerOptions,
  ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { bugText, type Log } from '../../base/log.ts';
import { splitHostPort } from '../../base/ip.ts';
import { clamp, limit, type Limit } from '../../base/limits.ts';
import { allowLowPort } from '../../runtime/low-ports.ts';
import { bindProblem } from '../../transport/bind-problem.ts';
import type { Counter, Family, Gauge, Registry } from '../../metrics/registry.ts';
import { closeSlowly, HttpAdmission } from '../../base/http-admission.ts';
import { answerText } from '../../base/http-answer.ts';
import { ClientConnections } from './client-connections.ts';
import { takeEarly } from '../contract/early-http.ts';
import type { HttpHandler, HttpTls } from '../contract/control-context.ts';
import { Problem } from '../../base/problem.ts';
import { makeSecureServer, type CutServer, type SecureParts } from './https-server.ts';

/**
 * Maximum number of connections per address. More than probes and scrapers need would use up descriptors that DNS
 * needs.
 */
export const httpConnectionLimit: Limit = limit({ default: 256, min: 2, max: 65_536 });
/** Requests are small and local, so slow ones are cut off, as in CoreDNS. */
const TIMEOUT_MS = 5000;
/**
 * Maximum size in bytes of a request body, which no plugin reads. A client that sends more is disconnected after the
 * answer.
 */
const BODY_MAX = 4096;
/** Milliseconds between checks for slow connections. */
const CHECK_MS = 1000;
/** Milliseconds until an idle connection is closed. Scrapers return within a minute. */
const IDLE_MS = 60_000;
/** Milliseconds after which a client that reads nothing of its answer is disconnected. */
const UNREAD_MS = 30_000;

interface HttpListener {
  readonly server: HttpServer;
  readonly tls: HttpTls | null;
  readonly cut: () => void;
  paths: ReadonlyMap<string, HttpHandler>;
}

/** An address's services: its handlers by path, and whether they use TLS. */
export interface PlannedAddress {
  readonly paths: ReadonlyMap<string, HttpHandler>;
  readonly tls: HttpTls | null;
}

/** By address, as formatted by `httpAddress`. */
export type HttpPlan = ReadonlyMap<string, PlannedAddress>;

/**
 * The HTTP servers (`health`, `ready`, `prometheus`). There is one per address, shared by all plugins that use it. A
 * reload opens new addresses before it closes any, so if one fails, every address stays unchanged.
 */
export class HttpListeners {
  readonly #log: Log;
  readonly #connections: number;
  readonly #shared: boolean;
  readonly #evicted: Family<readonly ['address'], Counter>;
  readonly #open: Family<readonly ['address'], Gauge>;
  /** All addresses share this, because they share this thread. */
  readonly #admission: HttpAdmission;
  readonly #listeners = new Map<string, HttpListener>();

  /**
   * @param connections limit per address
   * @param shared true if other processes may listen there too
   */
  constructor(
    log: Log,
    metrics: Registry,
    connections: number = httpConnectionLimit.default,
    shared: boolean = false,
  ) {
    this.#shared = shared;
    this.#log = log;
    this.#connections = clamp(connections, httpConnectionLimit);
    this.#evicted = metrics.counter(
      'ndots_http_evicted_total',
      'HTTP connections closed to make room for new ones, longest idle first.',
      ['address'],
    );
    const refused = metrics.counter(
      'ndots_http_refused_total',
      'HTTP requests refused because there were too many at once, from one client or in total, or because they were pipelined.',
    );
    this.#admission = new HttpAdmission(() => refused.add(1));
    this.#open = metrics.gauge('ndots_http_connections', 'Open HTTP connections.', ['address']);
  }

  /**
   * Opens the addresses that are not open yet. They answer at once, but nothing changes for the others until `commit`.
   * @throws Problem
   */
  async open(wanted: HttpPlan): Promise<readonly string[]> {
    const fresh: string[] = [];
    try {
      for (const [address, { paths, tls }] of wanted) {
        const known = this.#listeners.get(address);
        if (known !== undefined && known.tls?.key !== tls?.key) throw changedTls(address);
        if (known !== undefined) continue;
        const listener: HttpListener = { ...this.#make(tls, address), tls, paths };
        this.#bound(listener, address);
        await listen(listener, address, this.#shared);
        this.#listeners.set(address, listener);
        fresh.push(address);
      }
    } catch (error) {
      await this.close(fresh);
      throw error;
    }
    return fresh;
  }

  #make(tls: HttpTls | null, address: string): CutServer {
    const evicted = this.#evicted.with(address);
    return makeServer(tls, {
      log: this.#log,
      handshakes: this.#connections,
      evicted: () => evicted.add(1),
    });
  }

  /** Limits an address's connections, and admits its requests. */
  #bound(listener: HttpListener, address: string): void {
    const { server } = listener;
    const open = this.#open.with(address);
    const evicted = this.#evicted.with(address);
    const connections = new ClientConnections(this.#connections, () => evicted.add(1));
    server.on(listener.tls === null ? 'connection' : 'secureConnection', (socket: Socket) => {
      connections.add(socket, () => open.set(connections.size));
    });
    server.on('request', (request, response) => {
      connections.begun(request.socket);
      passOver(request, response);
      response.once('close', () => connections.done(request.socket));
      this.#admission.take({
        request,
        response,
        probe: this.#handler(listener, request)?.probe === true,
        answer: () => this.#answer(listener, request, response),
      });
    });
  }

  #handler(listener: HttpListener, request: IncomingMessage): HttpHandler | undefined {
    return listener.paths.get(pathOf(request.url ?? '/'));
  }

  /**
   * Answers any request without throwing, because this thread also feeds the workers and must not be ended by a
   * request.
   */
  #answer(listener: HttpListener, request: IncomingMessage, response: ServerResponse): void {
    const handler = this.#handler(listener, request);
    if (handler === undefined) {
      response.setHeader('x-content-type-options', 'nosniff');
      answerText(response, 404, '404 page not found\n');
      return;
    }
    try {
      handler(request, response);
    } catch (error) {
      this.#log.error(`${request.method} ${request.url}: ${bugText(error)}`);
      if (response.headersSent) response.destroy();
      else answerText(response, 500, '500 internal error\n');
    }
  }

  /** Assigns every address to the new configuration's handlers, and closes addresses that are no longer used. */
  async commit(wanted: HttpPlan): Promise<void> {
    for (const [address, { paths }] of wanted) this.#listeners.get(address)!.paths = paths;
    await this.close([...this.#listeners.keys()].filter((address) => !wanted.has(address)));
  }

  async close(addresses: readonly string[] = [...this.#listeners.keys()]): Promise<void> {
    await Promise.all(
      addresses.map((address) => {
        const endpoint = this.#listeners.get(address);
        this.#listeners.delete(address);
        if (endpoint === undefined) return Promise.resolve();
        return new Promise<void>((resolve) => {
          endpoint.server.close(() => resolve());
          endpoint.cut();
        });
      }),
    );
  }

  /** Returns an address's actual port (for `:0`), or null. */
  port(address: string): number | null {
    const bound = this.#listeners.get(httpAddress(address))?.server.address();
    return typeof bound === 'object' && bound !== null ? bound.port : null;
  }
}

/** Discards a request's body if it is short enough. */
function passOver(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request;
  let left = BODY_MAX;
  const end = (): void => closeSlowly(socket);
  request.on('data', (bytes: Buffer) => {
    if (left < 0) return;
    left -= bytes.length;
    if (left >= 0) return;
    request.pause();
    if (response.writableFinished) end();
    else response.once('finish', end);
  });
}

function makeServer(tls: HttpTls | null, parts: Omit<SecureParts, 'tls' | 'timeoutMs'>): CutServer {
  const options = {
    requestTimeout: TIMEOUT_MS,
    headersTimeout: TIMEOUT_MS,
    keepAliveTimeout: IDLE_MS,
    connectionsCheckingInterval: CHECK_MS,
  };
  const made =
    tls === null
      ? plainServer(options)
      : makeSecureServer(options, { ...parts, tls, timeoutMs: TIMEOUT_MS });
  made.server.setTimeout(UNREAD_MS);
  return made;
}

function plainServer(options: ServerOptions): CutServer {
  const server = builtins.http().createServer(options);
  return { server, cut: () => server.closeAllConnections() };
}

/** Creates the problem for two plugins that use the same address with different TLS settings. */
export function mixedTls(address: string): Problem {
  return new Problem({
    code: 'http-tls-mixed',
    text: `${address} would be served both with and without TLS, or with two certificates`,
    hint: 'Plugins that use the same address share one server.',
    remedy: 'Give them separate addresses, or the same `tls`.',
  });
}

function changedTls(address: string): Problem {
  return new Problem({
    code: 'http-tls-changed',
    text: `${address} changes between HTTP and HTTPS, or its TLS settings change`,
    hint: 'The open address can only be changed after it is closed.',
    remedy: 'Restart the server, or use another address.',
  });
}

/**
 * Returns the path in a request's target. The target may be anything (`//`, `*`, a whole URL), so no URL parser is
 * used.
 */
function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*/s, '');
  return path === '' ? '/' : path;
}

/** Opens the address, or takes over the socket that has been open since the program started. */
function listen({ server, tls }: HttpListener, address: string, shared: boolean): Promise<void> {
  const { host, port } = placeOf(address);
  const early = takeEarly(host, port);
  if (early !== null && tls === null) {
    server.on('error', () => undefined);
    server.listen(early.server);
    server.unref();
    for (const socket of early.sockets) {
      server.emit('connection', socket);
      socket.resume();
    }
    return Promise.resolve();
  }
  early?.server.close();
  for (const socket of early?.sockets ?? []) socket.destroy();
  allowLowPort(port);
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      void bindProblem(error, 'tcp', { address: host, port }).then(reject);
    });
    server.listen({ port, reusePort: shared, ...(host !== '' && { host }) }, () => {
      server.removeAllListeners('error');
      server.on('error', () => undefined);
      server.unref();
      resolve();
    });
  });
}

/** Splits an address into host and port. If it is invalid, binding it will fail. */
function placeOf(address: string): { readonly host: string; readonly port: number } {
  const { host, port } = splitHostPort(address) ?? { host: address, port: null };
  return { host, port: port ?? 0 };
}

/**
 * Returns an address's canonical spelling, which allows plugins to share it. `0.0.0.0` and `::` mean all addresses of
 * both families, as in Go. localhost means IPv4 first, regardless of the machine's resolver, because scrapers and
 * probes expect that.
 */
export function httpAddress(address: string): string {
  const { host, port } = placeOf(address);
  if (host === 'localhost') return `127.0.0.1:${port}`;
  return host === '0.0.0.0' || host === '::' ? `:${port}` : address;
}
