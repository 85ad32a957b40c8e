/** An in-memory API server that only supports Kuberhealthy's kinds, pods and events. */
import { asObject, child, text, type JsonObject } from '../../src/server/base/json-object.ts';
import type { ApiClient, ApiRequest } from '../../src/server/kube/api/client.ts';
import { ApiFailure } from '../../src/server/kube/api/failure.ts';

const groups: Readonly<Record<string, readonly string[]>> = {
  '/apis/comcast.github.io/v1': ['khchecks', 'khjobs', 'khstates'],
  '/apis/kuberhealthy.github.io/v2': ['healthchecks', 'healthchecks/status'],
};

/** A request: `PATCH healthchecks/status dns`, `list pods`, `watch pods` … */
type Asked = string;

interface Watcher {
  readonly resource: string;
  readonly push: (event: object) => void;
}

/** A client that calls that server directly, without a network. */
export class CheckApi implements ApiClient {
  readonly host = 'api';
  readonly asked: Asked[] = [];
  /** True if the server is unreachable. */
  isAway = false;
  /** The status code returned for each change to an object, such as 500 or 429; 0 handles the change normally. */
  refusesWith = 0;
  /** The requests to refuse, or null for all changes. */
  refuses: RegExp | null = null;
  /** The delay requested after a refusal, or null for none. */
  retryAfterMs: number | null = null;
  /** True if it accepts requests but never answers. */
  hangs = false;
  readonly #objects = new Map<string, JsonObject>();
  readonly #watchers = new Set<Watcher>();
  #version = 1;

  /** Creates or replaces an object. */
  put(resource: string, name: string, object: JsonObject, annotations: object = {}): void {
    const own = child(object, 'metadata');
    const metadata = { name, namespace: 'team', uid: `uid-${resource}-${name}`, annotations };
    this.#set(resource, { ...withPod(resource, object), metadata: { ...metadata, ...own } });
  }

  get(resource: string, name: string): JsonObject | null {
    return this.#objects.get(`${resource} ${name}`) ?? null;
  }

  all(resource: string): readonly JsonObject[] {
    return [...this.#objects].flatMap(([key, object]) =>
      key.startsWith(`${resource} `) ? [object] : [],
    );
  }

  remove(resource: string, name: string): void {
    const object = this.get(resource, name);
    this.#objects.delete(`${resource} ${name}`);
    if (object !== null) this.#tell(resource, 'DELETED', object);
  }

  count(pattern: RegExp): number {
    return this.asked.filter((each) => pattern.test(each)).length;
  }

  stream(request: ApiRequest): Promise<void> {
    const { path, query, change, into, signal } = request;
    const answer = (value: object): Promise<void> => {
      into.push(Buffer.from(JSON.stringify(value)));
      return Promise.resolve();
    };
    const forever = (): Promise<void> =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    if (this.isAway) return Promise.reject(new ApiFailure({ kind: 'network', text: 'away' }));
    if (this.hangs) {
      // As in the real client, the first byte has a time limit.
      this.asked.push(`hung ${change?.method ?? 'GET'}`);
      return forever();
    }
    const kinds = groups[path];
    if (kinds !== undefined) return answer({ resources: kinds.map((name) => ({ name })) });
    const parts = path.split('/').filter((each) => each !== '');
    const rest = parts.slice(parts[0] === 'api' ? 2 : 3);
    const [resource = '', name = '', sub = ''] = rest[0] === 'namespaces' ? rest.slice(2) : rest;
    if (query['watch'] !== undefined) {
      this.asked.push(`watch ${resource}`);
      return this.#watch(request, resource);
    }
    if (change === undefined) {
      this.asked.push(`list ${resource}`);
      const items = this.all(resource);
      return answer({ metadata: { resourceVersion: String(this.#version) }, items });
    }
    const { method, body } = change;
    this.asked.push(`${method} ${resource}${sub === '' ? '' : `/${sub}`} ${name}`.trim());
    if (this.refuses?.test(path) ?? this.refusesWith !== 0)
      return failed(
        this.refusesWith || 500,
        this.refusesWith === 403 ? 'forbidden' : 'server',
        this.retryAfterMs,
      );
    const given = body === '' ? {} : asObject(JSON.parse(body));
    if (method === 'POST') {
      const made = child(given, 'metadata');
      const called = text(made, 'name');
      if (this.get(resource, called) !== null) return failed(409, 'server');
      return answer(this.#set(resource, { ...given, metadata: made }));
    }
    const before = this.get(resource, name);
    if (before === null) return failed(404, 'missing');
    if (method === 'DELETE') {
      this.remove(resource, name);
      return answer({});
    }
    const expected = text(child(given, 'metadata'), 'resourceVersion');
    const known = text(child(before, 'metadata'), 'resourceVersion');
    if (expected !== '' && expected !== known) return failed(409, 'server');
    return answer(this.#set(resource, merged(before, given)));
  }

  close(): void {}

  #set(resource: string, object: JsonObject): JsonObject {
    const metadata = { ...child(object, 'metadata'), resourceVersion: String(++this.#version) };
    const key = `${resource} ${text(metadata, 'name')}`;
    const now = { ...object, metadata };
    const type = this.#objects.has(key) ? 'MODIFIED' : 'ADDED';
    this.#objects.set(key, now);
    this.#tell(resource, type, now);
    return now;
  }

  #tell(resource: string, type: string, object: JsonObject): void {
    // A watch never reports a change before the request that made it is answered.
    queueMicrotask(() => {
      for (const watcher of this.#watchers)
        if (watcher.resource === resource) watcher.push({ type, object });
    });
  }

  #watch({ into, signal }: ApiRequest, resource: string): Promise<void> {
    const watcher: Watcher = {
      resource,
      push: (event) => into.push(Buffer.from(`${JSON.stringify(event)}\n`)),
    };
    this.#watchers.add(watcher);
    return new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => {
        this.#watchers.delete(watcher);
        reject(signal.reason as Error);
      }),
    );
  }
}

function failed(
  status: number,
  kind: ApiFailure['kind'],
  retryAfterMs: number | null = null,
): Promise<never> {
  const text = `the API server answered ${status}`;
  return Promise.reject(new ApiFailure({ kind, status, text, retryAfterMs }));
}

/** RFC 7396. */
function merged(before: JsonObject, patch: JsonObject): JsonObject {
  const after: Record<string, unknown> = { ...before };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete after[key];
    else if (typeof value === 'object' && !Array.isArray(value))
      after[key] = merged(asObject(after[key]), asObject(value));
    else after[key] = value;
  }
  return after;
}

/** By default, checks have pods with a container. */
function withPod(resource: string, object: JsonObject): JsonObject {
  const spec = child(object, 'spec');
  if (!/^(healthchecks|khchecks|khjobs)$/.test(resource) || 'podSpec' in spec) return object;
  const pod = { containers: [{ name: 'main', image: 'checker' }] };
  return {
    ...object,
    spec: { ...spec, podSpec: resource === 'healthchecks' ? { spec: pod } : pod },
  };
}
