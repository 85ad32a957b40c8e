/** The HTTP server of the console: the page, its files, and the views as JSON and as streams. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../../server/base/clock.ts';
import { problemsIn } from '../../../server/base/problem.ts';
import type { Views, ViewName, ViewQuery } from '../../../tools/watch/view.ts';
import type { ConsoleAssets } from './console-assets.ts';
import { consolePage } from './console-page.ts';
import { cookieName, RequestGuard } from './request-guard.ts';
import { parseViewRequest } from './view-request.ts';
import { ViewStreams } from './view-streams.ts';

/** Longest address of a request, characters. */
const TARGET_MAX = 8192;
/** Connections at a time. */
const CONNECTIONS_MAX = 256;
const HEADERS_MS = 10_000;

/** No script, style or data from elsewhere, and no other page may frame this one. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types lit-html',
].join('; ');

const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/** The sources of the console's content. */
export interface ConsoleServerParts {
  readonly listen: { readonly host: string; readonly port: number };
  readonly hosts: readonly string[];
  readonly token: string;
  readonly clock: Clock;
  readonly assets: ConsoleAssets;
  /** For people: where the traffic comes from. */
  readonly source: () => string;
  ask<V extends ViewName>(query: ViewQuery<V>): Views[V];
}

/** Serves the console until it is closed. */
export class ConsoleServer {
  readonly #parts: ConsoleServerParts;
  readonly #server: Server;
  readonly #streams: ViewStreams;
  #guard: RequestGuard | null = null;

  private constructor(parts: ConsoleServerParts) {
    this.#parts = parts;
    this.#streams = new ViewStreams({
      clock: parts.clock,
      view: (key) => JSON.stringify(parts.ask(parseViewRequest(key))),
    });
    this.#server = createServer({ headersTimeout: HEADERS_MS, requestTimeout: HEADERS_MS });
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#server.on('request', (request, response) => this.#answer(request, response));
  }

  /** Resolves when it listens. Rejects with the error of the system. */
  static async start(parts: ConsoleServerParts): Promise<ConsoleServer> {
    const console = new ConsoleServer(parts);
    const { host, port } = parts.listen;
    await new Promise<void>((resolve, reject) => {
      console.#server.once('error', reject);
      console.#server.listen(port, host, resolve);
    });
    const { token, hosts } = parts;
    console.#guard = new RequestGuard({ token, host, port: console.port, hosts });
    return console;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The address that a person opens, with the token. */
  get address(): string {
    const { host } = this.#parts.listen;
    const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
    const printed = name.includes(':') ? `[${name}]` : name;
    return `http://${printed}:${this.port}/?token=${this.#parts.token}`;
  }

  async close(): Promise<void> {
    this.#streams.close();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    const { method = '', url: target = '' } = request;
    if (method !== 'GET' && method !== 'HEAD')
      return end(response, 405, 'text/plain', 'The console is read-only: GET and HEAD.\n');
    if (target.length > TARGET_MAX)
      return end(response, 414, 'text/plain', 'The address is too long.\n');
    const mark = target.indexOf('?');
    const path = mark < 0 ? target : target.slice(0, mark);
    const query = mark < 0 ? '' : target.slice(mark + 1);
    const token = path === '/' ? new URLSearchParams(query).get('token') : null;
    const refusal = this.#guard?.refuse(request, token);
    if (refusal !== null && refusal !== undefined)
      return end(response, refusal.status, 'text/plain', `${refusal.text}\n`);
    if (token !== null) return this.#welcome(response);
    this.#serve(path, query, response);
  }

  /** Moves the token from the address, which people share, into a cookie. */
  #welcome(response: ServerResponse): void {
    const cookie = `${cookieName(this.port)}=${this.#parts.token}`;
    response.setHeader('set-cookie', `${cookie}; Path=/; HttpOnly; SameSite=Strict`);
    response.setHeader('location', '/');
    end(response, 303, 'text/plain', '');
  }

  #serve(path: string, query: string, response: ServerResponse): void {
    if (path === '/') {
      const now = this.#parts.ask({ view: 'now' });
      return end(response, 200, 'text/html', consolePage(now, this.#parts.source()));
    }
    const asset = this.#parts.assets.get(path.slice(1));
    if (asset !== undefined) return end(response, 200, asset.type, asset.bytes);
    const [, kind, view] = /^\/api\/(view|live)\/([a-z]+)$/.exec(path) ?? [];
    if (view === undefined) return end(response, 404, 'text/plain', 'There is no such page.\n');
    const key = `${view}?${query}`;
    try {
      if (kind === 'view')
        end(
          response,
          200,
          'application/json',
          JSON.stringify(this.#parts.ask(parseViewRequest(key))),
        );
      else {
        // Rejects an invalid request before the stream begins.
        parseViewRequest(key);
        this.#streams.add(key, response);
      }
    } catch (error) {
      const [problem] = problemsIn(error) ?? [];
      if (problem === undefined) throw error;
      const { message: text, hint } = problem;
      end(response, 400, 'application/json', JSON.stringify({ text, hint }));
    }
  }
}

function end(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Uint8Array,
): void {
  const charset = type.startsWith('text/') || type === 'application/json' ? '; charset=utf-8' : '';
  response.writeHead(status, { 'content-type': `${type}${charset}` });
  response.end(body);
}
