import { every, type Clock, type Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { isLater } from '../../base/maybe.ts';
import { printPlace, type Problem } from '../../base/problem.ts';
import { ImpliedCluster } from './cluster.ts';
import { ManifestDirectory, type Look } from './directory-scan.ts';
import { noManifests } from './read-once.ts';
import type { ObjectKind } from '../store/objects.ts';
import {
  StringTable,
  type GoneRecord,
  type ObjectRecord,
  type Reduction,
} from '../store/object-record.ts';
import { ObjectStore } from '../store/object-store.ts';
import type { Source, SourceEvents, WantedObjects } from '../store/object-source.ts';

/** The directory to read, and the objects to look for. */
export interface ManifestParts<R extends ObjectRecord> {
  readonly directory: string;
  /** Maximum number of bytes for reading one object, and for all objects together. */
  readonly memory?: number;
  readonly wanted: WantedObjects;
  readonly reduction: Reduction<R>;
  readonly clock: Clock;
  readonly log: Log;
  /** Called for each problem in a manifest, in addition to the log line. */
  problem?(problem: Problem): void;
  /** Called with the number of bytes the objects use, after they have changed. */
  applied?(bytes: number): void;
}

/**
 * Reads Kubernetes objects from a directory of YAML and JSON files. Throws a `Problem` if the directory cannot be read.
 */
export function manifestSource<R extends ObjectRecord>(parts: ManifestParts<R>): Source<R> {
  return new ManifestSource(parts);
}

/** Milliseconds between scans for changes. */
const LOOK_EVERY_MS = 1000;

class ManifestSource<R extends ObjectRecord> implements Source<R> {
  readonly #parts: ManifestParts<R>;
  readonly #directory: ManifestDirectory;
  readonly #cluster: ImpliedCluster;
  readonly #stores = new Map<ObjectKind, ObjectStore<R>>();
  #events: SourceEvents<R> | null = null;
  #timer: Timer | null = null;
  /** The scan in progress, if it takes longer than one turn. */
  #reading: Promise<unknown> | null = null;
  #stopped = false;
  #synced = false;
  /** Why the last scan failed, so that the failure is logged only once. */
  #failure = '';
  /** The problems found by the last scan and by the last build. */
  #seen: ReadonlySet<string> = new Set();
  #built: ReadonlySet<string> = new Set();

  constructor(parts: ManifestParts<R>) {
    this.#parts = parts;
    this.#directory = new ManifestDirectory(parts.directory, parts.memory);
    this.#cluster = new ImpliedCluster(parts.wanted);
    const strings = new StringTable();
    const { endpoints, pods, multicluster, topology } = parts.wanted;
    const kinds: ObjectKind[] = ['Namespace', 'Service'];
    if (endpoints || multicluster) kinds.push('EndpointSlice');
    if (pods) kinds.push('Pod');
    if (topology === 'nodes' || topology === 'pods') kinds.push('Node');
    if (multicluster) kinds.push('ServiceImport');
    for (const kind of kinds)
      this.#stores.set(kind, new ObjectStore(kind, parts.reduction.fields[kind], strings));
    // Check this here rather than in `start`, so that a wrong directory is a configuration error.
    this.#directory.check();
  }

  get synced(): boolean {
    return this.#synced;
  }

  start(events: SourceEvents<R>): void {
    this.#events = events;
    this.#look();
    this.#timer = every(this.#parts.clock, LOOK_EVERY_MS, () => this.#look());
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#stopped = true;
    await this.#reading;
  }

  *snapshot(): Iterable<R> {
    for (const store of this.#stores.values()) yield* store.objects();
  }

  /** Scans the directory, unless a scan is still in progress. */
  #look(): void {
    if (this.#reading !== null) return;
    try {
      const look = this.#directory.look();
      if (!isLater(look)) return this.#looked(look);
      this.#reading = look
        .then((later) => this.#stopped || this.#looked(later))
        .catch((error: unknown) => this.#failed(error as Error))
        .finally(() => (this.#reading = null));
    } catch (error) {
      this.#failed(error as Error);
    }
  }

  #looked({ changed, problems }: Look): void {
    this.#seen = this.#tellNew(problems, this.#seen);
    if (this.#failure !== '') this.#parts.log.info(`${this.#parts.directory} can be read again`);
    this.#failure = '';
    if (changed.length > 0 || !this.#synced) this.#apply();
    if (this.#synced) return;
    this.#synced = true;
    for (const kind of this.#stores.keys()) this.#events!.synced(kind);
  }

  #failed({ message }: Error): void {
    if (message === this.#failure) return;
    this.#failure = message;
    this.#parts.log.error(`${message}; the objects stay unchanged`);
  }

  #apply(): void {
    const { entries, problems } = this.#cluster.build(this.#directory.manifests);
    this.#parts.applied?.(this.#directory.bytes);
    this.#built = this.#tellNew(problems, this.#built);
    const changes: (R | GoneRecord)[] = [];
    for (const [kind, store] of this.#stores) {
      store.beginList();
      for (const { namespace, name, objects } of entries.get(kind) ?? []) {
        store.put(namespace, name, objects.map(this.#parts.reduction.of), changes);
      }
      store.endList(changes);
    }
    const counts = [...this.#stores].map(([kind, store]) => count(store.size, kind)).join(', ');
    this.#parts.log.info(
      `${this.#parts.directory}: ${count(this.#directory.files, 'file')}, ${counts}`,
    );
    if (this.#directory.manifests.length === 0) {
      const { message, hint } = noManifests(this.#parts.directory, this.#directory.files);
      this.#parts.log.warning(`${message}; ${hint}`);
    }
    if (changes.length > 0) this.#events!.changes(changes);
  }

  /**
   * Logs only new problems. Problems between files recur with every build, and unreadable directories with every scan.
   */
  #tellNew(problems: readonly Problem[], before: ReadonlySet<string>): ReadonlySet<string> {
    this.#tell(problems.filter((problem) => !before.has(problem.print())));
    return new Set(problems.map((problem) => problem.print()));
  }

  #tell(problems: readonly Problem[]): void {
    for (const problem of problems) {
      const parts = [
        problem.place === null
          ? problem.message
          : `${printPlace(problem.place)}: ${problem.message}`,
        problem.hint,
        problem.remedy,
      ];
      this.#parts.log.error(parts.filter((part) => part !== null).join('; '));
      this.#parts.problem?.(problem);
    }
  }
}

const plurals: Readonly<Record<string, string>> = {
  Namespace: 'namespaces',
  Service: 'services',
  EndpointSlice: 'endpoint slices',
  Pod: 'pods',
  ServiceImport: 'service imports',
  file: 'files',
};

function count(number: number, kind: string): string {
  const plural = plurals[kind] ?? kind;
  return `${number} ${number === 1 ? plural.replace(/s$/, '') : plural}`;
}
