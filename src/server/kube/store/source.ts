import type { ObjectChange, ObjectKind, KubeObject } from './objects.ts';

/**
 * The origin of Kubernetes objects: an API server or a directory of manifests. Lives on the main
 * thread.
 */
export interface Source {
  start(events: SourceEvents): void;
  stop(): Promise<void>;
  /**
   * True if the first complete list of every wanted kind has been delivered. Stays true when the
   * API server becomes unavailable.
   */
  readonly synced: boolean;
  /**
   * The whole current state, for a worker that joins later. To be read within the current turn of
   * the event loop.
   */
  snapshot(): Iterable<KubeObject>;
}

/** Receives what a source brings in. */
export interface SourceEvents {
  /**
   * Called with changes in the order they happened; never empty, and without changes that change
   * nothing.
   */
  changes(batch: readonly ObjectChange[]): void;
  /**
   * Called once per wanted kind, when its first complete list has been delivered through `changes`.
   */
  synced(kind: ObjectKind): void;
  /**
   * Called when a request has failed, or no data for a moment, before everything was
   * listed: the wait may be long.
   */
  away?(): void;
}

/** The resources to load. Services and namespaces are always included. */
export interface WantedObjects {
  readonly endpoints: boolean;
  readonly pods: boolean;
  readonly multicluster: boolean;
  /** Label selector for services, endpoint slices and pods; `''` for all. */
  readonly labels: string;
  /** Label selector for namespaces; `''` for all. */
  readonly namespaceLabels: string;
  /** Keep the topology zone of endpoints. */
  readonly zones: boolean;
  /** Keep the labels of pods (for the metadata `kubernetes/client-label/KEY`). */
  readonly podLabels?: boolean;
  /**
   * Keep the hints of endpoints. `nodes` includes nodes, reduced to their place; `pods` also the
   * node of each pod.
   */
  readonly topology?: 'prefixes' | 'nodes' | 'pods';
}
