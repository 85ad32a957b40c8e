/**
 * Serves the part of the Kubernetes API that DNS servers use, which is listing and watching services, endpoint slices,
 * namespaces and pods. Changes are made here rather than by a cluster's controllers.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { JsonObject } from '../../server/base/json-object.ts';
import { child, text } from '../../server/base/json-object.ts';

const kinds = {
  '/api/v1/services': { kind: 'Service', apiVersion: 'v1' },
  '/api/v1/namespaces': { kind: 'Namespace', apiVersion: 'v1' },
  '/api/v1/pods': { kind: 'Pod', apiVersion: 'v1' },
  '/apis/discovery.k8s.io/v1/endpointslices': {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
  },
} as const;

export type ServedKind = (typeof kinds)[keyof typeof kinds]['kind'];

const API_PORT = 8080;

interface ApiWatcher {
  readonly kind: ServedKind;
  readonly reply: ServerResponse;
  /** True if it gets no further events. */
  frozen: boolean;
}

export class LabApi {
  #server: Server | null = null;
  readonly #objects = new Map<string, { readonly kind: ServedKind; readonly object: JsonObject }>();
  readonly #watchers = new Set<ApiWatcher>();
  #version = 1;

  of(kind: ServedKind): readonly JsonObject[] {
    return [...this.#objects.values()]
      .filter((one) => one.kind === kind)
      .map(({ object }) => object);
  }

  /** Adds an object, replacing any that has the same name. */
  put(kind: ServedKind, object: JsonObject): void {
    const key = keyOf(kind, object);
    const isNew = !this.#objects.has(key);
    const versioned = this.#versioned(kind, object);
    this.#objects.set(key, { kind, object: versioned });
    this.#tell(kind, isNew ? 'ADDED' : 'MODIFIED', versioned);
  }

  delete(kind: ServedKind, object: JsonObject): void {
    const key = keyOf(kind, object);
    if (!this.#objects.delete(key)) return;
    this.#tell(kind, 'DELETED', this.#versioned(kind, object));
  }

  /**
   * Starts listening, and closes frozen watches so that their clients list again. `start` chooses the network
   * namespace.
   */
  async listen(start: (server: Server, port: number) => Promise<void>): Promise<void> {
    for (const { frozen, reply } of this.#watchers) if (frozen) reply.destroy();
    if (this.#server !== null) return;
    this.#server = createServer((request, reply) => {
      this.#serve(request, reply);
    });
    await start(this.#server, API_PORT);
  }

  close(): void {
    this.#server?.close();
    this.#server?.closeAllConnections();
    this.#server = null;
    this.#watchers.clear();
  }

  /** Freezes current watches. They stay open but receive no more events, as if the server were slow. */
  freezeWatches(): void {
    for (const watcher of this.#watchers) watcher.frozen = true;
  }

  #versioned(kind: ServedKind, object: JsonObject): JsonObject {
    const { apiVersion } = Object.values(kinds).find((one) => one.kind === kind)!;
    const metadata = { ...child(object, 'metadata'), resourceVersion: String(++this.#version) };
    return { ...object, kind, apiVersion, metadata };
  }

  #tell(kind: ServedKind, type: string, object: JsonObject): void {
    const line = `${JSON.stringify({ type, object })}\n`;
    for (const watcher of this.#watchers)
      if (watcher.kind === kind && !watcher.frozen) watcher.reply.write(line);
  }

  #serve(request: IncomingMessage, reply: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://api');
    const json = (status: number, body: object): void => {
      reply.writeHead(status, { 'content-type': 'application/json' });
      reply.end(JSON.stringify(body));
    };
    if (url.pathname === '/version') return json(200, { gitVersion: 'v1.36.3' });
    const served = Object.hasOwn(kinds, url.pathname)
      ? kinds[url.pathname as keyof typeof kinds]
      : null;
    if (served === null) {
      return json(404, { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404 });
    }
    const { kind, apiVersion } = served;
    if (url.searchParams.has('sendInitialEvents')) {
      // Makes clients that request a streaming list fall back to an ordinary one.
      return json(422, { kind: 'Status', status: 'Failure', reason: 'Invalid', code: 422 });
    }
    if (['1', 'true'].includes(url.searchParams.get('watch') ?? '')) {
      reply.writeHead(200, { 'content-type': 'application/json' });
      reply.flushHeaders();
      const watcher = { kind, reply, frozen: false };
      this.#watchers.add(watcher);
      reply.on('close', () => this.#watchers.delete(watcher));
      // Sends events that are newer than the version of the client's list.
      const since = Number(url.searchParams.get('resourceVersion') ?? '0');
      for (const object of selected(this.of(kind), url)) {
        const version = Number(text(child(object, 'metadata'), 'resourceVersion'));
        if (version > since) reply.write(`${JSON.stringify({ type: 'ADDED', object })}\n`);
      }
      return;
    }
    const metadata = { resourceVersion: String(this.#version) };
    json(200, { kind: `${kind}List`, apiVersion, metadata, items: selected(this.of(kind), url) });
  }
}

/**
 * Applies the field selector with which CoreDNS and ndots exclude finished pods:
 * `status.phase!=Succeeded,status.phase!=Failed,…`.
 */
function selected(objects: readonly JsonObject[], url: URL): readonly JsonObject[] {
  const without = (url.searchParams.get('fieldSelector') ?? '')
    .split(',')
    .flatMap((term) => /^status\.phase!=(\w+)$/.exec(term)?.[1] ?? []);
  return objects.filter((object) => !without.includes(text(child(object, 'status'), 'phase')));
}

function keyOf(kind: ServedKind, object: JsonObject): string {
  const metadata = child(object, 'metadata');
  return `${kind}/${text(metadata, 'namespace')}/${text(metadata, 'name')}`;
}
