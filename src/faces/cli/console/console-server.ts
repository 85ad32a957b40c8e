/** The console's HTTP server, which serves the page, its files, and views as JSON and as streams. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../../server/base/clock.ts';
import { readFileSync } from 'node:fs';
import {
  decideAgain,
  type AccessDecision,
  type AccessGate,
  type AccessRefusal,
  type AccessRequest,
} from '../../../server/base/http-access.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { boundConnections } from '../../../server/base/idle-connections.ts';
import { ACCESS_AUDIENCE } from '../../../server/kube/access/api-access.ts';
import type { PrivacyLevel, ViewSource } from '../../../tools/watch/view-privacy.ts';
import type { CacheAction } from '../cache/cache-answers.ts';
import type { CheckSources } from './check-sources.ts';
import type { ConsoleAsset, ConsoleAssets } from './console-assets.ts';
import { consolePage } from './console-page.ts';
import { findingsReport } from './findings-report.ts';
import type { HandOver } from './hand-over.ts';
import { usage } from '../option-values.ts';
import { refusalJson } from './refusal-json.ts';
import { cookieName, RequestGuard } from './request-guard.ts';
import type { ServerCaches } from './server-caches.ts';
import { filtersIn, parseViewRequest } from './view-request.ts';
import { ViewStreams } from './view-streams.ts';

/** Maximum length of a request target, characters. */
const TARGET_MAX = 8192;
/** Limit of concurrent connections. */
const CONNECTIONS_MAX = 256;
const HEADERS_MS = 10_000;
/** The path for the only request that changes anything. It must carry a special header. */
const FLUSH_PATH = '/api/cache/flush';
const CHANGE_HEADER = 'ndots-console';

/** Forbids scripts, styles and data from other origins, and prevents other pages from framing this one. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types lit-html ndots-engine',
].join('; ');

const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/** The views for one cluster, or for all sources if there are no clusters. */
export interface ConsoleCluster {
  /** The context. Empty if there is at most one cluster. */
  readonly name: string;
  /** Description of the traffic source, for people. */
  readonly source: () => string;
  readonly views: ViewSource;
  readonly handOver: Pick<HandOver, 'view' | 'packets'>;
  readonly caches: ServerCaches;
}

export interface ClusterRow {
  readonly name: string;
  readonly source: string;
  /** Queries per second. */
  readonly rate: number;
  readonly queries: number;
  readonly lost: number;
  readonly failed: number;
  readonly findings: number;
}

export interface ConsoleServerParts {
  readonly listen: { readonly host: string; readonly port: number };
  readonly hosts: readonly string[];
  readonly gate: AccessGate;
  /** The token in the address, or null if each reader has a separate one. */
  readonly token: string | null;
  readonly clock: Clock;
  readonly assets: ConsoleAssets;
  /** The first cluster is the default. */
  readonly clusters: readonly ConsoleCluster[];
  readonly privacy: PrivacyLevel;
  /** True if the pods behind addresses are known, so that filters may name them. */
  readonly hasOwners: boolean;
  /** Reads the `--corefile` file. The name is empty if there is none. */
  readonly corefile: () => { readonly name: string; readonly text: string };
  readonly checks: CheckSources;
  /** Dashboard URL with `{from}` and `{to}`, or empty if there is none. */
  readonly grafana: string;
}

export class ConsoleServer {
  readonly #parts: ConsoleServerParts;
  readonly #server: Server;
  readonly #streams: ViewStreams;
  #guard: RequestGuard | null = null;

  private constructor(parts: ConsoleServerParts) {
    this.#parts = parts;
    this.#streams = new ViewStreams({
      clock: parts.clock,
      view: (key) => JSON.stringify(this.#view(key)),
    });
    this.#server = createServer({ headersTimeout: HEADERS_MS, requestTimeout: HEADERS_MS });
    boundConnections(this.#server, CONNECTIONS_MAX);
    this.#server.on('request', (request, response) => this.#answer(request, response));
  }

  /** Resolves once the server is listening. Rejects with the system's error. */
  static async start(parts: ConsoleServerParts): Promise<ConsoleServer> {
    const console = new ConsoleServer(parts);
    const { host, port } = parts.listen;
    await new Promise<void>((resolve, reject) => {
      console.#server.once('error', reject);
      console.#server.listen(port, host, resolve);
    });
    const { gate, hosts } = parts;
    console.#guard = new RequestGuard({ gate, host, port: console.port, hosts });
    return console;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The address to open in a browser. Includes the token if there is only one. */
  get address(): string {
    const { host } = this.#parts.listen;
    const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
    const printed = name.includes(':') ? `[${name}]` : name;
    const { token } = this.#parts;
    return `http://${printed}:${this.port}/${token === null ? '' : `?token=${token}`}`;
  }

  async close(): Promise<void> {
    this.#streams.close();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    const { method = '', url: target = '' } = request;
    const isChange = method === 'POST' && target.startsWith(`${FLUSH_PATH}?`);
    if (method !== 'GET' && method !== 'HEAD' && !isChange)
      return end(response, 405, 'text/plain', 'The console is read-only: GET and HEAD.\n');
    if (target.length > TARGET_MAX)
      return end(response, 414, 'text/plain', 'The address is too long.\n');
    const mark = target.indexOf('?');
    const path = mark < 0 ? target : target.slice(0, mark);
    const query = mark < 0 ? '' : target.slice(mark + 1);
    const guard = this.#guard!;
    const foreign = guard.foreign(request);
    if (foreign !== null) return end(response, foreign.status, 'text/plain', `${foreign.text}\n`);
    const given = path === '/' ? new URLSearchParams(query).get('token') : null;
    const asked = guard.asked(request, given);
    request.resume();
    const go = (refusal: AccessDecision): void => {
      if (response.destroyed) return;
      if (refusal !== null) return this.#refuse(refusal, response);
      if (given !== null) return this.#welcome(given, response);
      // A form on another page cannot send this header.
      if (
        (path === FLUSH_PATH) !== isChange ||
        (isChange && request.headers[CHANGE_HEADER] !== '1')
      )
        return end(response, 405, 'text/plain', `${path} is for the Cache page.\n`);
      this.#serve(path, query, asked, response);
    };
    const decision = guard.decide(asked);
    if (decision instanceof Promise) void decision.then(go);
    else go(decision);
  }

  #refuse({ status, text }: AccessRefusal, response: ServerResponse): void {
    const advice =
      this.#parts.token === null
        ? `Open the address with ?token= and a token: kubectl create token NAME --audience ${ACCESS_AUDIENCE}`
        : 'Open the address that ndots console printed.';
    const hint = status === 401 ? ` ${advice}` : '';
    end(
      response,
      status,
      'text/plain',
      `${text.charAt(0).toUpperCase()}${text.slice(1)}.${hint}\n`,
    );
  }

  /** Moves the token from the address, which people share, into a cookie. */
  #welcome(token: string, response: ServerResponse): void {
    const cookie = `${cookieName(this.port)}=${encodeURIComponent(token)}`;
    response.setHeader('set-cookie', `${cookie}; Path=/; HttpOnly; SameSite=Strict`);
    response.setHeader('location', '/');
    end(response, 303, 'text/plain', '');
  }

  #serve(path: string, query: string, asked: AccessRequest, response: ServerResponse): void {
    const { assets, clock, gate } = this.#parts;
    if (path === '/') return end(response, 200, 'text/html', this.#page());
    const asset = assets.get(path.slice(1));
    if (asset !== undefined) return sendAsset(asset, response);
    const [, kind, view] = /^\/api\/(view|live)\/([a-z]+)$/.exec(path) ?? [];
    const parameters = new URLSearchParams(query);
    const answer = view === undefined ? this.#others[path] : undefined;
    if (view === undefined && answer === undefined)
      return end(response, 404, 'text/plain', 'There is no such page.\n');
    const refused = (error: unknown): void => refuse(error, response);
    try {
      if (view === undefined) answer!(parameters, response)?.catch(refused);
      else if (kind === 'view') {
        const found = this.#view(`${view}?${query}`);
        if (parameters.has('download')) downloadAs(`${view}.json`, response);
        json(found, response);
      } else {
        // A stream behind another one on the same connection would never be sent, and never close.
        if (response.socket === null) return void response.req.socket.destroy();
        const key = `${view}?${query}`;
        // Rejects an invalid request before the stream starts.
        parseViewRequest(key, this.#parts.hasOwners);
        this.#cluster(parameters);
        this.#streams.add(key, response);
        decideAgain(gate, asked, response, clock, () => response.destroy());
      }
    } catch (error) {
      refused(error);
    }
  }

  #page(): string {
    const { clusters, grafana, privacy } = this.#parts;
    const { views, source, caches } = clusters[0]!;
    return consolePage({
      now: views.view({ view: 'now' }),
      source: source(),
      privacy,
      hasCaches: caches.isGiven,
      grafana,
      clusters: clusters.map(({ name }) => name),
    });
  }

  /**
   * @param key for `parseViewRequest`, including the cluster name
   * @throws Problem (`usage`)
   */
  #view(key: string): unknown {
    const query = parseViewRequest(key, this.#parts.hasOwners);
    const { views } = this.#cluster(new URLSearchParams(key.slice(key.indexOf('?') + 1)));
    if (query.view === 'reloads') return views.reloads();
    return query.view === 'map' ? views.map(query) : views.view(query);
  }

  /** @throws Problem (`usage`) */
  #cluster(parameters: URLSearchParams): ConsoleCluster {
    const { clusters } = this.#parts;
    const wanted = parameters.get('cluster') ?? clusters[0]!.name;
    const found = clusters.find(({ name }) => name === wanted);
    if (found === undefined)
      throw usage(
        `this console does not read a cluster ${wanted}`,
        `Clusters: ${clusters.map(({ name }) => name).join(', ')}`,
      );
    return found;
  }

  #overview(): readonly ClusterRow[] {
    return this.#parts.clusters.map(({ name, views, source }) => {
      const { rates, queries, lost, failed, findings } = views.view({ view: 'now' });
      return {
        ...{ name, source: source(), rate: rates.queries, queries, lost, failed },
        findings: findings.length,
      };
    });
  }

  /** Handlers for the pages' other requests. */
  readonly #others: Readonly<
    Record<string, (parameters: URLSearchParams, response: ServerResponse) => Promise<void> | void>
  > = {
    '/api/trace': (parameters, response) => {
      const client = parameters.get('client') ?? '';
      const { views } = this.#cluster(parameters);
      const found = views.traceInput(client, parameters.get('name') ?? '');
      if (found === null) throw usage(`${client} has no stored lookup`);
      json(found, response);
    },
    '/api/corefile': (_, response) => json(this.#parts.corefile(), response),
    '/api/cache': (parameters, response) => this.#caches('explain', parameters, response),
    [FLUSH_PATH]: (parameters, response) => this.#caches('flush', parameters, response),
    '/api/checks': async (_, response) => json(await this.#parts.checks.view(), response),
    '/api/hand-over': async (parameters, response) =>
      json(
        await this.#cluster(parameters).handOver.view(filtersIn(parameters, this.#parts.hasOwners)),
        response,
      ),
    '/api/clusters': (_, response) => json(this.#overview(), response),
    '/api/findings.html': (parameters, response) => {
      const { views, source } = this.#cluster(parameters);
      const [now, findings] = [views.view({ view: 'now' }), views.view({ view: 'findings' })];
      downloadAs('findings.html', response);
      end(response, 200, 'text/html', findingsReport(now, findings, source()));
    },
    '/api/lookups.pcapng': async (parameters, response) => {
      const closed = new AbortController();
      response.on('close', () => closed.abort());
      const { handOver } = this.#cluster(parameters);
      await handOver.packets(
        filtersIn(parameters, this.#parts.hasOwners),
        closed.signal,
        async (bytes) => {
          if (!response.headersSent) {
            downloadAs('lookups.pcapng', response);
            response.writeHead(200, { 'content-type': 'application/vnd.tcpdump.pcap' });
          }
          if (!response.write(bytes) && !closed.signal.aborted)
            await once(response, 'drain', { signal: closed.signal }).catch(() => undefined);
        },
      );
      response.end();
    },
  };

  async #caches(
    action: CacheAction,
    parameters: URLSearchParams,
    response: ServerResponse,
  ): Promise<void> {
    const { caches } = this.#cluster(parameters);
    if (this.#parts.privacy === 'counts')
      throw usage('--privacy counts hides names, and therefore cache entries');
    const below = parameters.get('below') === '1';
    json(await caches.ask(action, parameters.get('name') ?? '', below), response);
  }
}

function downloadAs(name: string, response: ServerResponse): void {
  response.setHeader('content-disposition', `attachment; filename="${name}"`);
}

/** An upgrade may have replaced the page's files, whose names contain their hash. */
function sendAsset({ path, type }: ConsoleAsset, response: ServerResponse): void {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const text = `This file of the page cannot be read: ${whyFailed(error)}. Start ndots console again.\n`;
    return end(response, 404, 'text/plain', text);
  }
  end(response, 200, type, bytes);
}

function json(value: unknown, response: ServerResponse): void {
  end(response, 200, 'application/json', JSON.stringify(value));
}

/** @throws the error if it is a bug */
function refuse(error: unknown, response: ServerResponse): void {
  const refusal = refusalJson(error);
  if (response.headersSent) return void response.destroy();
  response.removeHeader('content-disposition');
  end(response, 400, 'application/json', refusal);
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
