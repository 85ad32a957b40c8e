/** The fake API server's objects and their history. */
import { parseSelector, type Selector } from '../../../src/server/kube/manifests/selector.ts';

/** An object in API format. */
export interface KubeJson {
  apiVersion?: string;
  kind?: string;
  metadata: {
    name: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    resourceVersion?: string;
    deletionTimestamp?: string;
    [key: string]: unknown;
  };
  [key: string]: unknown;
}

/** One state of a stored object. It is never changed, only replaced. */
export interface Stored {
  readonly object: KubeJson;
  readonly revision: number;
  /** `kind` and `apiVersion` are added when it is served, because several versions share one store. */
  readonly body: string;
}

/** If `before` is null, the object was created; if `after` is null, it was deleted. */
export interface StoreEvent {
  readonly resource: string;
  readonly revision: number;
  readonly before: Stored | null;
  readonly after: Stored | null;
}

export interface Backup {
  readonly revision: number;
  readonly resources: ReadonlyMap<string, ReadonlyMap<string, Stored>>;
}

/**
 * Replaces etcd and the watch cache: it has the objects, one revision counter for all of them, and a window of past
 * events.
 */
export class Store {
  readonly #resources = new Map<string, Map<string, Stored>>();
  readonly #listeners = new Set<(event: StoreEvent) => void>();
  #history: StoreEvent[] = [];
  #revision: number;
  /** The oldest revision from which a watch can start. */
  #compacted: number;
  readonly #window: number;

  /** @param window the number of events to store */
  constructor(window = 10_000, revision = 1000) {
    this.#window = window;
    this.#revision = revision;
    this.#compacted = revision;
  }

  get revision(): number {
    return this.#revision;
  }

  get compacted(): number {
    return this.#compacted;
  }

  /** Returns objects in key order (`namespace/name`), as in etcd. */
  all(resource: string): Stored[] {
    const objects = this.#resources.get(resource) ?? new Map<string, Stored>();
    return [...objects.keys()].sort().map((key) => objects.get(key)!);
  }

  get(resource: string, namespace: string, name: string): Stored | null {
    return this.#resources.get(resource)?.get(keyOf(namespace, name)) ?? null;
  }

  put(resource: string, object: KubeJson): Stored {
    const key = keyOf(object.metadata.namespace ?? '', object.metadata.name);
    let objects = this.#resources.get(resource);
    if (objects === undefined) this.#resources.set(resource, (objects = new Map()));
    const before = objects.get(key) ?? null;
    const revision = ++this.#revision;
    const kept: KubeJson = {
      ...object,
      metadata: {
        uid: `00000000-0000-0000-0000-${String(revision).padStart(12, '0')}`,
        creationTimestamp: '2026-01-01T00:00:00Z',
        ...before?.object.metadata,
        ...object.metadata,
        resourceVersion: String(revision),
      },
    };
    const after = stored(kept, revision);
    objects.set(key, after);
    this.#record({ resource, revision, before, after });
    return after;
  }

  delete(resource: string, namespace: string, name: string): Stored | null {
    const objects = this.#resources.get(resource);
    const before = objects?.get(keyOf(namespace, name));
    if (before === undefined) return null;
    objects!.delete(keyOf(namespace, name));
    this.#record({ resource, revision: ++this.#revision, before, after: null });
    return before;
  }

  /** Returns the events after a revision, or null if they are no longer stored. */
  since(resource: string, revision: number): StoreEvent[] | null {
    if (revision < this.#compacted) return null;
    return this.#history.filter(
      (event) => event.resource === resource && event.revision > revision,
    );
  }

  /** Advances the revision as if unwatched objects had changed. Leases and events use up many revisions per second. */
  skip(revisions: number): void {
    this.#revision += revisions;
  }

  backup(): Backup {
    const resources = [...this.#resources].map(
      ([name, objects]) => [name, new Map(objects)] as const,
    );
    return { revision: this.#revision, resources: new Map(resources) };
  }

  /**
   * Restores a backup, as `etcdutl snapshot restore` does. Watches are not notified, so a server that was stopped would
   * start from this state.
   * @param bumpedBy the revisions that `--bump-revision` adds. By default, the backup's revisions are used again
   */
  restore({ revision, resources }: Backup, bumpedBy: number = 0): void {
    this.#resources.clear();
    for (const [name, objects] of resources) this.#resources.set(name, new Map(objects));
    this.#revision = revision + bumpedBy;
    this.#compacted = this.#revision;
    this.#history = [];
  }

  /** Discards the history, so that watches from older revisions are refused. */
  compact(): void {
    this.#history = [];
    this.#compacted = ++this.#revision;
  }

  listen(listener: (event: StoreEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #record(event: StoreEvent): void {
    this.#history.push(event);
    if (this.#history.length > 2 * this.#window) {
      this.#history = this.#history.slice(-this.#window);
      this.#compacted = this.#history[0]!.revision - 1;
    }
    for (const listener of this.#listeners) listener(event);
  }
}

function keyOf(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

function stored(object: KubeJson, revision: number): Stored {
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object;
  return { object, revision, body: JSON.stringify(rest).slice(1) };
}

/** Returns the object's JSON in one API version. */
export function serve(one: Stored, version: string, kind: string): string {
  return `{"kind":"${kind}","apiVersion":"${version}",${one.body}`;
}

/** Returns the same, as deleted at `revision`. */
export function serveDeleted(one: Stored, revision: number, version: string, kind: string): string {
  const metadata = { ...one.object.metadata, resourceVersion: String(revision) };
  return serve(stored({ ...one.object, metadata }, revision), version, kind);
}

export type Matches = (object: KubeJson) => boolean;

/** Parses a request's label and field selectors. Throws an `Error` whose message is sent to the client. */
export function selection(labelSelector: string, fieldSelector: string): Matches {
  const labels: Selector | null = parseSelector(labelSelector);
  if (labels === null) throw new Error(`unable to parse requirement: ${labelSelector}`);
  const fields = fieldSelector === '' ? [] : fieldSelector.split(',').map(fieldTerm);
  return (object) => labels(object.metadata.labels ?? {}) && fields.every((term) => term(object));
}

function fieldTerm(term: string): Matches {
  const match = /^([a-zA-Z.]+)(==|=|!=)(.*)$/.exec(term);
  const read = match === null ? undefined : fieldReaders[match[1]!];
  if (match === null || read === undefined) {
    throw new Error(`field label not supported: ${match?.[1] ?? term}`);
  }
  const [, , sign, value] = match;
  return (object) => (read(object) === value) !== (sign === '!=');
}

const fieldReaders: Readonly<Record<string, (object: KubeJson) => string>> = {
  'metadata.name': (object) => object.metadata.name,
  'metadata.namespace': (object) => object.metadata.namespace ?? '',
  'status.phase': (object) => deep(object, 'status', 'phase'),
  'spec.nodeName': (object) => deep(object, 'spec', 'nodeName'),
  'status.podIP': (object) => deep(object, 'status', 'podIP'),
};

function deep(object: KubeJson, one: string, two: string): string {
  const value = (object[one] as Record<string, unknown> | undefined)?.[two];
  return typeof value === 'string' ? value : '';
}
