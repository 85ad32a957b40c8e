import { printBytes } from '../../base/limits.ts';
import { whyFailed } from '../../base/why-failed.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import { apiClient, type ApiClient, type RestHooks } from './client.ts';
import type { RequestLimits } from './request-gate.ts';
import type { ApiConnection } from './connection.ts';
import { ApiFailure, type FailureKind } from './failure.ts';
import { getJson } from './get-json.ts';
import type { EndpointSlice, KubeObject, ObjectKind } from '../store/objects.ts';
import {
  StringTable,
  type GoneRecord,
  type ObjectRecord,
  type Reduction,
} from '../store/object-record.ts';
import { Reflector, type ListMost } from './reflector.ts';
import { wantedResources, type ResourceForm } from './resources.ts';
import { ObjectStore } from '../store/object-store.ts';
import { BoundedStores } from '../store/bounded-stores.ts';
import { readSnapshot, writeSnapshot } from '../store/snapshot-file.ts';
import type { SocketAddress } from './sockets.ts';
import type { WorkShare } from './work-share.ts';
import type { Source, SourceEvents, WantedObjects } from '../store/object-source.ts';
import { roundedDuration } from '../../base/failure-report.ts';
import { asObject, text } from '../../base/json-object.ts';

/** The API server to read from, and the objects to read. */
export interface ApiServerParts<R extends ObjectRecord> {
  readonly connection: ApiConnection;
  readonly wanted: WantedObjects;
  readonly reduction: Reduction<R>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Part of the user agent. */
  readonly version: string;
  readonly hooks?: RestHooks;
  readonly limits?: RequestLimits;
  /**
   * Limits the share of CPU time spent on reading a list while earlier objects are being served. If absent, there is no
   * limit.
   */
  readonly share?: WorkShare;
  /** Maximum number of objects and pages in a list. If absent, the limit is higher than any cluster needs. */
  readonly listMost?: ListMost;
  /** Maximum memory for all objects, in bytes. If absent, there is no limit. Objects that do not fit are omitted. */
  readonly memory?: number;
  /** Called for each omitted object, and for each change to one. */
  readonly leftOut?: (kind: ObjectKind) => void;
  /** Called for each list or watch that failed or was cut off. */
  readonly failed?: (kind: FailureKind) => void;
  /** Called with the number of bytes the objects use, whenever it may have changed. */
  readonly taken?: (bytes: number) => void;
  /** The file that stores the last state, for restarts while the API server is down. If absent, no state is stored. */
  readonly snapshotFile?: string;
}

/** Reads Kubernetes objects from an API server, with one list and watch per kind. */
export function apiServerSource<R extends ObjectRecord>(parts: ApiServerParts<R>): Source<R> {
  return new ApiServerSource(parts);
}

/** Minimum interval between writes of the state file, in milliseconds. */
const WRITE_EVERY_MS = 60_000;
/**
 * Milliseconds between the first lists and the first write of the state file. This is short because a restart may come
 * soon.
 */
const FIRST_WRITE_MS = 1000;
/** Minimum interval between log lines about omitted objects, in milliseconds. */
const COMPLAIN_EVERY_MS = 60_000;
/**
 * Milliseconds without data after startup until the API server counts as unavailable. The state file is then used, and
 * the server starts serving.
 */
const PATIENCE_MS = 1000;
/** Maximum age of a usable state file, in milliseconds. */
const AGE_MAX_MS = 24 * 3600 * 1000;

class ApiServerSource<R extends ObjectRecord> implements Source<R> {
  readonly #parts: ApiServerParts<R>;
  readonly #client: ApiClient;
  readonly #stores = new Map<ObjectKind, ObjectStore<R>>();
  readonly #bounds: BoundedStores<R>;
  /** Time of the latest log line about omitted objects. */
  #complainedAt = -Infinity;
  #leftOut = 0;
  /**
   * The API servers' addresses, taken from the latest slice that had any. A server that shuts down removes itself from
   * its Service.
   */
  #servers: readonly SocketAddress[] = [];
  readonly #reflectors: Reflector<R, R | GoneRecord>[] = [];
  readonly #synced = new Set<ObjectKind>();
  readonly #stopping = new AbortController();
  #events: SourceEvents<R> | null = null;
  #canStream: Promise<boolean> | null = null;
  #patience: Timer | null = null;
  #nextWrite: Timer | null = null;
  #restored = false;
  #changed = false;
  #writing: Promise<void> | null = null;

  constructor(parts: ApiServerParts<R>) {
    this.#parts = parts;
    const { connection, clock, hooks, limits, share } = parts;
    this.#client = apiClient({
      connection,
      clock,
      userAgent: serverUserAgent(parts.version),
      ...(connection.isService === true ? { others: () => this.#servers } : {}),
      ...(hooks === undefined ? {} : { hooks }),
      ...(limits === undefined ? {} : { limits }),
      ...(share === undefined ? {} : { share }),
    });
    this.#bounds = new BoundedStores(parts.memory ?? Infinity, (kind) => this.#leaveOut(kind));
    const strings = new StringTable();
    for (const resource of wantedResources(parts.wanted)) {
      const store = new ObjectStore<R>(
        resource.kind,
        parts.reduction.fields[resource.kind],
        strings,
      );
      this.#stores.set(resource.kind, store);
      this.#reflectors.push(
        new Reflector({
          client: this.#client,
          resource: { ...resource, forms: resource.forms.map((form) => this.#reduced(form)) },
          store: this.#bounds.bound(store),
          clock,
          random: parts.random,
          log: parts.log,
          canStream: () => this.#askStreaming(),
          changes: (batch) => this.#deliver(batch),
          listed: () => this.#listed(resource.kind),
          failed: (failure) => {
            parts.failed?.(failure.kind);
            this.#away();
          },
          ...(parts.listMost === undefined ? {} : { listMost: parts.listMost }),
        }),
      );
    }
  }

  get synced(): boolean {
    // Nodes only narrow down answers, so a missing permission for nodes must not delay everything else.
    for (const kind of this.#stores.keys())
      if (kind !== 'Node' && !this.#synced.has(kind)) return false;
    return true;
  }

  start(events: SourceEvents<R>): void {
    this.#events = events;
    for (const reflector of this.#reflectors) reflector.start();
    this.#patience = this.#parts.clock.after(PATIENCE_MS, () => {
      const nothing = [...this.#stores.values()].every((store) => store.size === 0);
      if (nothing && this.#synced.size === 0) this.#away();
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#patience?.cancel();
    this.#nextWrite?.cancel();
    await Promise.all(this.#reflectors.map((reflector) => reflector.stop()));
    this.#client.close();
    await this.#write();
  }

  *snapshot(): Iterable<R> {
    for (const store of this.#stores.values()) yield* store.objects();
  }

  #deliver(batch: readonly (R | GoneRecord)[]): void {
    this.#changed = true;
    this.#events!.changes(batch);
    this.#parts.taken?.(this.#bounds.bytes);
  }

  #reduced({ transform, ...form }: ResourceForm<KubeObject>): ResourceForm<R> {
    return { ...form, transform: (raw) => transform(raw).map((object) => this.#reduce(object)) };
  }

  #reduce(object: KubeObject): R {
    if (isApiServers(object)) {
      const servers = addressesOf(object);
      if (servers.length > 0) this.#servers = servers;
    }
    return this.#parts.reduction.of(object);
  }

  #leaveOut(kind: ObjectKind): void {
    const { clock, connection, leftOut, log, memory } = this.#parts;
    this.#leftOut++;
    leftOut?.(kind);
    if (clock.now() - this.#complainedAt < COMPLAIN_EVERY_MS) return;
    this.#complainedAt = clock.now();
    log.error(
      `the objects from the API server at ${connection.url.host} need more than apiserver_memory ${printBytes(memory!)}, ` +
        `so further objects are omitted and not found (${this.#leftOut} so far; the last is a ${kind}); raise it, or look for the objects that fill the cluster`,
    );
  }

  #listed(kind: ObjectKind): void {
    if (this.#synced.has(kind)) return;
    this.#synced.add(kind);
    this.#events!.synced(kind);
    if (this.synced && this.#parts.snapshotFile !== undefined) this.#writeIn(FIRST_WRITE_MS);
  }

  /**
   * Returns true if the server supports streaming lists, which are enabled by default since 1.32 and optional since
   * 1.27. Older servers misinterpret the request.
   */
  #askStreaming(): Promise<boolean> {
    this.#canStream ??= this.#askVersion().then(
      ({ major, minor }) => major > 1 || minor >= 27,
      (error: unknown) => {
        if (
          error instanceof ApiFailure &&
          ['forbidden', 'missing', 'malformed'].includes(error.kind)
        ) {
          return false;
        }
        this.#canStream = null;
        throw error;
      },
    );
    return this.#canStream;
  }

  async #askVersion(): Promise<{ major: number; minor: number }> {
    const version = await getJson(this.#client, {
      path: '/version',
      task: 'get version',
      waitMs: 10_000,
      signal: this.#stopping.signal,
    });
    // Some providers append a plus sign to the minor version.
    const part = (key: string): number => Number.parseInt(text(asObject(version), key), 10) || 0;
    return { major: part('major'), minor: part('minor') };
  }

  #away(): void {
    this.#restore();
    if (!this.synced) this.#events!.away?.();
  }

  /** Fills stores that have not been listed yet from the state file. This happens only once. */
  #restore(): void {
    const { snapshotFile, clock, log, connection } = this.#parts;
    if (snapshotFile === undefined || this.#restored || this.#synced.size > 0) return;
    this.#restored = true;
    const empty = [...this.#stores.values()].filter((store) => store.size === 0);
    if (empty.length < this.#stores.size) return;
    let out: (R | GoneRecord)[] = [];
    let ageMs = 0;
    // Slices derived from one core Endpoints object are consecutive and are stored together.
    let group: R[] = [];
    const keep = (): void => {
      const first = group[0];
      if (first === undefined) return;
      this.#stores.get(first.kind)?.put(first.namespace, keyName(first), group, out);
      group = [];
    };
    try {
      const found = readSnapshot(
        snapshotFile,
        (head) => {
          ageMs = clock.wall() - head.writtenAt;
          const fits = head.server === connection.url.host && head.wanted === this.#wanted;
          if (fits) this.#servers = head.servers;
          if (!fits)
            log.info(`${snapshotFile} is from another API server or configuration and is not used`);
          else if (ageMs > AGE_MAX_MS)
            log.warning(`${snapshotFile} is too old (${roundedDuration(ageMs)}) and is not used`);
          return fits && ageMs <= AGE_MAX_MS;
        },
        (line) => {
          const record = line as R;
          if (record.name === keyName(record)) keep();
          group.push(record);
          if (out.length < 500) return;
          this.#events!.changes(out);
          out = [];
        },
      );
      keep();
      if (out.length > 0) this.#events!.changes(out);
      if (found === null) return;
      log.warning(
        `the API server does not answer: serving ${found.objects} objects as they were ${roundedDuration(ageMs)} ago, from ${snapshotFile}`,
      );
    } catch (error) {
      log.warning(`${snapshotFile} is not used: ${whyFailed(error)}`);
      return;
    }
    for (const store of this.#stores.values()) {
      // A list in progress may not have included these objects yet.
      store.beginList();
      this.#listed(store.kind);
    }
    this.#changed = false;
  }

  /** The objects that a file must have been written for. */
  get #wanted(): string {
    const { wanted, reduction } = this.#parts;
    return JSON.stringify(wanted) + reduction.key;
  }

  #writeIn(ms: number): void {
    if (this.#stopping.signal.aborted) return;
    this.#nextWrite = this.#parts.clock.after(ms, () => {
      void this.#write().then(() => this.#writeIn(WRITE_EVERY_MS));
    });
  }

  async #write(): Promise<void> {
    await this.#writing;
    const { snapshotFile, clock, log, connection } = this.#parts;
    if (snapshotFile === undefined || !this.#changed || !this.synced) return;
    this.#changed = false;
    const stores = [...this.#stores.values()];
    for (const store of stores) store.pin();
    this.#writing = writeSnapshot(
      snapshotFile,
      {
        format: 'ndots-snapshot-2',
        writtenAt: clock.wall(),
        server: connection.url.host,
        wanted: this.#wanted,
        servers: this.#servers,
      },
      this.snapshot(),
    )
      .catch((error: unknown) => {
        this.#changed = true;
        log.warning(`cannot write ${snapshotFile}: ${whyFailed(error)}`);
      })
      .finally(() => {
        for (const store of stores) store.unpin();
        this.#writing = null;
      });
    await this.#writing;
  }
}

function isApiServers(object: KubeObject): object is EndpointSlice {
  return (
    object.kind === 'EndpointSlice' &&
    object.namespace === 'default' &&
    object.service === 'kubernetes'
  );
}

function addressesOf({ endpoints, ports }: EndpointSlice): SocketAddress[] {
  const port = ports.find(({ name }) => name === 'https')?.port ?? -1;
  if (port < 0) return [];
  return endpoints.flatMap(({ addresses }) => addresses.map((host) => ({ host, port })));
}

/** Returns the name of the API object from which a record was derived. */
function keyName({ name }: ObjectRecord): string {
  return name.split('#', 1)[0]!;
}

/** The server's user agent, as seen in the API server's audit log. */
function serverUserAgent(version: string): string {
  const arch: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };
  return `CoreDNS-compatible ndots/${version} (${process.platform}/${arch[process.arch] ?? process.arch})`;
}
