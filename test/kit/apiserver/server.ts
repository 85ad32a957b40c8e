/** A fake Kubernetes API server. */
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { systemClock, type Clock } from '../../../src/server/base/clock.ts';
import type { PemIdentity } from '../authority.ts';
import { Faults, strike, type Verb } from './faults.ts';
import { Lists } from './lists.ts';
import {
  discoveryDocument,
  groupVersion,
  servedResources,
  storageName,
  type ServedResource,
} from './resources.ts';
import { failureStatus, Refusal } from './status.ts';
import { readSelection, readVersion } from './query.ts';
import { serve, Store, type Backup, type KubeJson } from './store.ts';
import { Watch } from './watches.ts';
import { create, existing, patch, remove, update } from './writes.ts';

/** Deviations from the Kubernetes server. */
export interface ApiServerOptions {
  readonly clock?: Clock;
  /** The minor version to report, 33 by default. Streaming lists work from 27 on unless they are disabled. */
  readonly minor?: number;
  /** The WatchList feature gate. By default, it is on from version 32. */
  readonly streamingLists?: boolean;
  /**
   * True if the database reports its progress (etcd since 3.4.31 and 3.5.13), which streaming lists need. True by
   * default.
   */
  readonly progressNotices?: boolean;
  /** Splits even lists from the watch cache (`resourceVersion=0`) into pages, which the real server does not do. */
  readonly pagesFromCache?: boolean;
  /** Resources that the server does not support, e.g. `discovery.k8s.io/v1`. */
  readonly without?: readonly string[];
  /** The bearer tokens to accept. If empty, tokens are not checked. */
  readonly tokens?: readonly string[];
  readonly tls?: PemIdentity & { readonly clientCa?: string };
  readonly port?: number;
  readonly store?: Store;
}

export interface SeenRequest {
  readonly verb: Verb | 'other';
  readonly resource: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: http.IncomingHttpHeaders;
}

interface ReviewedAccess {
  readonly spec: {
    readonly user: string;
    readonly resourceAttributes: { readonly verb: string; readonly resource: string };
  };
}

const mostSeen = 10_000;

/**
 * A fake kube-apiserver that follows the protocol strictly. It supports lists with pages and versions, watches with
 * bookmarks and ERROR events, streaming lists, discovery, and writes. It has no controllers, so it only has the test's
 * objects.
 */
export class ApiServer {
  readonly store: Store;
  readonly faults: Faults = new Faults();
  readonly seen: SeenRequest[] = [];
  readonly watches: Set<Watch> = new Set<Watch>();
  /** The settings that the nodes' kubelets report (`configz`). */
  readonly configz: Map<string, object> = new Map<string, object>();
  /** Returns pods' replies through the proxy, or null if there is no such pod. */
  proxied: (pod: string, port: number, path: string) => string | null = () => null;
  /** True if a user lacks a permission, given in SubjectAccessReview terms. */
  denied: (user: string, verb: string, resource: string) => boolean = () => false;
  tokens: readonly string[] | null;
  readonly #options: ApiServerOptions;
  readonly #clock: Clock;
  readonly #resources: readonly ServedResource[];
  readonly #lists: Lists;
  readonly #server: http.Server | https.Server;

  private constructor(options: ApiServerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.store = options.store ?? new Store();
    this.tokens = options.tokens ?? null;
    this.#resources = servedResources.filter(
      (one) => !(options.without ?? []).includes(groupVersion(one)),
    );
    this.#lists = new Lists(this.store, options.pagesFromCache ?? false);
    for (const name of ['default', 'kube-system']) this.put('namespaces', namespace(name));
    const handle = (request: IncomingMessage, reply: ServerResponse): void => {
      this.#handle(request, reply).catch((error: unknown) => this.#refuse(reply, error));
    };
    const { tls } = options;
    this.#server =
      tls === undefined
        ? http.createServer(handle)
        : https.createServer(
            {
              cert: tls.cert,
              key: tls.key,
              ...(tls.clientCa === undefined
                ? {}
                : { ca: tls.clientCa, requestCert: true, rejectUnauthorized: false }),
            },
            handle,
          );
  }

  static async start(options: ApiServerOptions = {}): Promise<ApiServer> {
    const made = new ApiServer(options);
    await new Promise<void>((resolve, reject) => {
      made.#server.on('error', reject);
      made.#server.listen(options.port ?? 0, '127.0.0.1', resolve);
    });
    return made;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `${this.#options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${this.port}`;
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  /** Stores an object under its plural (`services`, `endpointslices`) without checking it. */
  put(plural: string, object: KubeJson): void {
    this.store.put(this.#storage(plural), object);
  }

  delete(plural: string, namespace: string, name: string): void {
    this.store.delete(this.#storage(plural), namespace, name);
  }

  /** Cuts a resource's open watches, or all of them. */
  dropWatches(plural?: string): void {
    for (const watch of this.#open(plural)) watch.drop();
  }

  /** Simulates half-open connections: open watches receive no more data but are not closed. */
  freezeWatches(plural?: string): void {
    for (const watch of this.#open(plural)) watch.freeze();
  }

  /** Sends an ERROR event on open watches. */
  failWatches(code: number, message: string, plural?: string): void {
    for (const watch of this.#open(plural)) watch.error(failureStatus(code, message));
  }

  /** Restores a database backup during a short downtime. */
  restore(backup: Backup): void {
    this.store.restore(backup);
    this.#lists.forget();
    this.dropWatches();
  }

  /** Discards all history, so that no watch can be resumed. */
  compact(): void {
    this.store.compact();
    this.#lists.forget();
  }

  /** Returns the requests with this verb for this resource. */
  requests(verb: Verb, resource: string): SeenRequest[] {
    return this.seen.filter((one) => one.verb === verb && one.resource === resource);
  }

  #open(plural?: string): Watch[] {
    return [...this.watches].filter((watch) => plural === undefined || watch.resource === plural);
  }

  #storage(plural: string): string {
    const resource = servedResources.find((one) => one.plural === plural);
    if (resource === undefined) throw new Error(`no resource '${plural}'`);
    return storageName(resource);
  }

  async #handle(request: IncomingMessage, reply: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://server');
    if (url.pathname === '/apis/authorization.k8s.io/v1/subjectaccessreviews') {
      const { spec } = (await readJson(request)) as unknown as ReviewedAccess;
      const { verb: asked, resource: plural } = spec.resourceAttributes;
      const allowed = !this.denied(spec.user, asked, plural);
      return sendJson(reply, 201, JSON.stringify({ status: { allowed } }), '');
    }
    const target = this.#target(url.pathname);
    const verb = verbOf(request.method ?? 'GET', url.searchParams, target);
    const resource = target?.resource.plural ?? url.pathname.slice(1);
    this.seen.push({
      verb,
      resource,
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
    });
    if (this.seen.length > mostSeen) this.seen.shift();
    const fault = this.faults.take(resource, verb === 'other' ? 'get' : verb);
    if (fault !== null && !(await strike(fault, reply, this.#clock))) return;
    this.#authenticate(request);
    const accepts = String(request.headers['accept-encoding'] ?? '');
    const through = /^\/api\/v1\/namespaces\/[^/]+\/pods\/([^/:]+):(\d+)\/proxy(\/.*)$/.exec(
      decodeURIComponent(url.pathname),
    );
    if (through !== null) {
      const said = this.proxied(through[1]!, Number(through[2]), through[3]!);
      if (said === null) throw new Refusal(503, 'no endpoints available for the pod');
      reply.end(said);
      return;
    }
    if (url.pathname === '/readyz') return void reply.end('ok');
    const [, node = ''] = /^\/api\/v1\/nodes\/([^/]+)\/proxy\/configz$/.exec(url.pathname) ?? [];
    const configz = this.configz.get(node);
    if (configz !== undefined) return sendJson(reply, 200, JSON.stringify(configz), accepts);
    if (target === null) {
      const document =
        url.pathname === '/version'
          ? this.#version()
          : discoveryDocument(url.pathname, this.#resources);
      if (document === null) throw unknownPath();
      return sendJson(reply, 200, JSON.stringify(document), accepts);
    }
    const { resource: what, namespace, name } = target;
    const place = { store: this.store, resource: what, namespace };
    const version = groupVersion(what);
    switch (verb) {
      case 'watch':
        return this.#watch(reply, url.searchParams, target);
      case 'list': {
        const list = this.#lists.list(url.searchParams, what, namespace);
        return sendJson(reply, 200, list, accepts);
      }
      case 'get':
        return sendJson(reply, 200, serve(existing(place, name), version, what.kind), accepts);
      case 'create':
        return sendJson(
          reply,
          201,
          serve(create(place, await readJson(request)), version, what.kind),
          accepts,
        );
      case 'update': {
        const after = update(place, name, await readJson(request));
        return sendJson(reply, 200, serve(after, version, what.kind), accepts);
      }
      case 'patch': {
        const type = String(request.headers['content-type'] ?? '');
        const after = patch(place, name, type, await readJson(request));
        return sendJson(reply, 200, serve(after, version, what.kind), accepts);
      }
      case 'delete': {
        const gone = remove(place, name);
        const details = { name, kind: what.plural, uid: gone.object.metadata['uid'] };
        const done = { ...failureStatus(200, '', ''), status: 'Success', details };
        return sendJson(reply, 200, JSON.stringify(done), accepts);
      }
      default:
        throw new Refusal(405, 'the server does not allow this method on the requested resource');
    }
  }

  #watch(reply: ServerResponse, query: URLSearchParams, target: Target): void {
    const { resource } = target;
    const matches = readSelection(query);
    const streaming = query.get('sendInitialEvents');
    const rule = query.get('resourceVersionMatch');
    const minor = this.#options.minor ?? 33;
    const gate = this.#options.streamingLists ?? minor >= 32;
    if (streaming !== null && !(gate && minor >= 27)) {
      throw invalid(
        'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled',
      );
    }
    if (streaming !== null && rule !== 'NotOlderThan') {
      throw invalid('resourceVersionMatch: Forbidden: sendInitialEvents requires NotOlderThan');
    }
    if (streaming === null && rule !== null) {
      throw invalid(
        'resourceVersionMatch: Forbidden: forbidden for watch without sendInitialEvents',
      );
    }
    if (streaming !== null && this.#options.progressNotices === false) {
      // The wording of kube-apiserver 1.32.3 with etcd 3.4.23.
      throw new Refusal(
        500,
        'a watch stream was requested by the client but the required storage feature RequestWatchProgress is disabled',
        'InternalError',
      );
    }
    const from = readVersion(query);
    const timeoutMs = Number(query.get('timeoutSeconds') ?? 1800) * 1000;
    reply.writeHead(200, {
      'content-type': 'application/json',
      'cache-control': 'no-cache, private',
    });
    reply.flushHeaders();
    const { store } = this;
    const initial = streaming === 'true' || (streaming === null && (from === null || from === 0));
    const watch = new Watch(
      {
        store,
        clock: this.#clock,
        resource,
        reply,
        namespace: target.namespace,
        matches,
        bookmarks: query.get('allowWatchBookmarks') === 'true',
        timeoutMs,
        ended: () => this.watches.delete(watch),
      },
      initial ? store.revision : (from ?? store.revision),
    );
    this.watches.add(watch);
    if (initial) {
      const mark = streaming === 'true' && query.get('allowWatchBookmarks') === 'true';
      watch.initial(store.all(storageName(resource)), mark);
      return;
    }
    // A future version is not an error: the watch stays silent, even without bookmarks, until the store has passed it.
    if (from !== null && from > store.revision) return;
    const missed = store.since(storageName(resource), from ?? store.revision);
    if (missed === null) {
      watch.error(failureStatus(410, `too old resource version: ${from} (${store.compacted})`));
      return;
    }
    for (const event of missed) watch.event(event);
  }

  #authenticate(request: IncomingMessage): void {
    if (this.tokens === null) return;
    const socket = request.socket as Partial<TLSSocket>;
    if (this.#options.tls?.clientCa !== undefined && socket.authorized === true) return;
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    if (token === undefined || !this.tokens.includes(token)) throw new Refusal(401, 'Unauthorized');
  }

  #target(path: string): Target | null {
    const match =
      /^\/(?:api|apis\/([^/]+))\/([^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/status)?$/.exec(
        path,
      );
    if (match === null) return null;
    const [, group = '', version, namespace = '', plural, name = ''] = match;
    const find = (wanted: string): ServedResource | undefined =>
      this.#resources.find(
        (one) => one.group === group && one.version === version && one.plural === wanted,
      );
    const resource = find(plural!);
    if (resource !== undefined && (namespace === '' || resource.namespaced)) {
      return { resource, namespace, name };
    }
    // Refers to the namespace itself; the rest is a subresource or empty.
    if (namespace !== '' && group === '' && (plural === 'status' || plural === 'finalize')) {
      return { resource: find('namespaces')!, namespace: '', name: namespace };
    }
    throw unknownPath();
  }

  #version(): object {
    const minor = this.#options.minor ?? 33;
    return {
      major: '1',
      minor: String(minor),
      gitVersion: `v1.${minor}.0`,
      gitCommit: '',
      gitTreeState: 'clean',
      buildDate: '2026-01-01T00:00:00Z',
      goVersion: 'go1.24',
      compiler: 'gc',
      platform: 'linux/amd64',
    };
  }

  #refuse(reply: ServerResponse, error: unknown): void {
    const status =
      error instanceof Refusal
        ? error.status
        : failureStatus(500, error instanceof Error ? (error.stack ?? error.message) : 'fault');
    if (reply.headersSent) reply.destroy();
    else sendJson(reply, status.code, JSON.stringify(status), '');
  }
}

interface Target {
  readonly resource: ServedResource;
  readonly namespace: string;
  readonly name: string;
}

export function namespace(name: string): KubeJson {
  return {
    metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
    status: { phase: 'Active' },
  };
}

function verbOf(method: string, query: URLSearchParams, target: Target | null): Verb | 'other' {
  if (target === null) return 'other';
  switch (method) {
    case 'GET': {
      const watching = ['true', '1'].includes(query.get('watch') ?? '');
      return watching ? 'watch' : target.name === '' ? 'list' : 'get';
    }
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return 'delete';
    default:
      return 'other';
  }
}

function invalid(message: string): Refusal {
  return new Refusal(422, `ListOptions.meta.k8s.io "" is invalid: ${message}`);
}

function unknownPath(): Refusal {
  return new Refusal(404, 'the server could not find the requested resource');
}

/** The real server compresses replies larger than 128 KiB if the client accepts that. */
function sendJson(reply: ServerResponse, status: number, body: string, accepts: string): void {
  const headers: http.OutgoingHttpHeaders = { 'content-type': 'application/json' };
  if (body.length > 128 * 1024 && accepts.includes('gzip')) {
    reply.writeHead(status, { ...headers, 'content-encoding': 'gzip' });
    reply.end(gzipSync(body, { level: 1 }));
    return;
  }
  reply.writeHead(status, headers);
  reply.end(body);
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'));
  } catch (error) {
    throw new Refusal(400, `the body is not JSON: ${(error as Error).message}`);
  }
}
