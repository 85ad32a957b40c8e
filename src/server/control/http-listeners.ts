import { builtins } from '../../base/builtins.ts';
import type { IncomingMessage, Server as HttpServer, ServerResponse } from 'node:http';
import type { Log } from '../../base/log.ts';
import { bindProblem } from '../../net/bind-problem.ts';
import type { HttpHandler } from '../contract/control-context.ts';

interface HttpListener {
  readonly server: HttpServer;
  paths: ReadonlyMap<string, HttpHandler>;
}

/** Requests are small and local: slow ones are cut off as CoreDNS does. */
const TIMEOUT_MS = 5000;
/** How often slow ones are looked for, milliseconds. */
const CHECK_MS = 1000;
/** Who scrapes comes again within a minute: its connection is kept so long. */
const IDLE_MS = 60_000;
/** A client that takes nothing of what it asked for is cut off after so long. */
const UNREAD_MS = 30_000;
/** Connections at a time per address; more are probes gone wild, and would eat the descriptors that DNS needs. */
const CONNECTIONS_MAX = 256;

/**
 * The HTTP side (`health`, `ready`, `prometheus`): one server an address, shared by all plugins that name it. A reload
 * opens what is new before anything is closed, so a failed one leaves every address as it was.
 */
export class HttpListeners {
  readonly #log: Log;
  readonly #listeners = new Map<string, HttpListener>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Opens the addresses that are not open yet; nothing changes for the others until `commit`. */
  async open(wanted: HttpPlan): Promise<readonly string[]> {
    const fresh: string[] = [];
    try {
      for (const address of wanted.keys()) {
        if (this.#listeners.has(address)) continue;
        const endpoint: HttpListener = { server: makeServer(), paths: new Map() };
        endpoint.server.on('request', (request, response) =>
          this.#answer(endpoint, request, response),
        );
        await listen(endpoint.server, address);
        this.#listeners.set(address, endpoint);
        fresh.push(address);
      }
    } catch (error) {
      await this.close(fresh);
      throw error;
    }
    return fresh;
  }

  /** Whatever is asked: this thread also feeds the workers, and must not end because of a request. */
  #answer(endpoint: HttpListener, request: IncomingMessage, response: ServerResponse): void {
    const handler = endpoint.paths.get(pathOf(request.url ?? '/'));
    if (handler === undefined) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n');
      return;
    }
    try {
      handler(request, response);
    } catch (error) {
      this.#log.error(
        `${request.method} ${request.url}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
      if (response.headersSent) response.destroy();
      else response.writeHead(500, { 'content-type': 'text/plain' }).end('500 internal error\n');
    }
  }

  /** Hands every address to its new owner, and closes those that nobody wants any more. */
  async commit(wanted: HttpPlan): Promise<void> {
    for (const [address, paths] of wanted) this.#listeners.get(address)!.paths = paths;
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
          endpoint.server.closeAllConnections();
        });
      }),
    );
  }

  /** The port in use at an address (for `:0`), or null. */
  port(address: string): number | null {
    const bound = this.#listeners.get(address)?.server.address();
    return typeof bound === 'object' && bound !== null ? bound.port : null;
  }
}

function makeServer(): HttpServer {
  const server = builtins.http().createServer({
    requestTimeout: TIMEOUT_MS,
    headersTimeout: TIMEOUT_MS,
    keepAliveTimeout: IDLE_MS,
    connectionsCheckingInterval: CHECK_MS,
  });
  server.setTimeout(UNREAD_MS);
  server.maxConnections = CONNECTIONS_MAX;
  return server;
}

/** The path of a request's target, which may be anything (`//`, `*`, a whole URL): no URL parser is asked. */
function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*/s, '');
  return path === '' ? '/' : path;
}

/** Address → path → handler. */
export type HttpPlan = ReadonlyMap<string, ReadonlyMap<string, HttpHandler>>;

function listen(server: HttpServer, address: string): Promise<void> {
  const { host, port } = splitAddress(address);
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      void bindProblem(error, 'tcp', { address: host, port }).then(reject);
    });
    server.listen(host === '' ? { port } : { port, host }, () => {
      server.removeAllListeners('error');
      server.on('error', () => undefined);
      server.unref();
      resolve();
    });
  });
}

/** `:8080`, `localhost:9153`, `[::1]:8080`. */
function splitAddress(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  // Scrapers and probes that say localhost mean IPv4 first, whatever the machine's resolver answers.
  return {
    host: host === 'localhost' ? '127.0.0.1' : host,
    port: Number(address.slice(colon + 1)),
  };
}
