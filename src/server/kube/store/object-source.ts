import type { ObjectKind } from './objects.ts';
import type { GoneRecord, ObjectRecord } from './object-record.ts';

/**
 * The origin of Kubernetes objects, which is an API server or a directory of manifests. It delivers what its consumer
 * keeps of them. Runs on the main thread.
 */
export interface Source<R extends ObjectRecord> {
  start(events: SourceEvents<R>): void;
  stop(): Promise<void>;
  /**
   * True once the first complete list of every wanted kind has been delivered. It stays true if the API server becomes
   * unavailable.
   */
  readonly synced: boolean;
  /**
   * The complete current state, for a worker that joins later. It must be read within the current turn of the event
   * loop.
   */
  snapshot(): Iterable<R>;
}

/** Receives the records that a source delivers. */
export interface SourceEvents<R extends ObjectRecord> {
  /**
   * Called with changes in the order in which they happened. The list is never empty, and every entry is an actual
   * change.
   */
  changes(batch: readonly (R | GoneRecord)[]): void;
  /** Called once per wanted kind, when its first complete list has been delivered through `changes`. */
  synced(kind: ObjectKind): void;
  /**
   * Called if a request failed, or if no data arrived for a moment, before everything was listed. The wait may be long.
   */
  away?(): void;
}

/** The resources to load. Services and namespaces are always included. */
export interface WantedObjects {
  readonly endpoints: boolean;
  readonly pods: boolean;
  readonly multicluster: boolean;
  /** Label selector for services, endpoint slices and pods, or `''` for all. */
  readonly labels: string;
  /** Label selector for namespaces; `''` for all. */
  readonly namespaceLabels: string;
  /** Include the topology zone of endpoints. */
  readonly zones: boolean;
  /** True to include pod labels (for the metadata `kubernetes/client-label/KEY`). */
  readonly podLabels?: boolean;
  /**
   * Set to include endpoint hints. `nodes` adds nodes, reduced to their location, and `pods` also adds each pod's node.
   */
  readonly topology?: 'prefixes' | 'nodes' | 'pods';
}
