import type { ObjectChange, ObjectKind, KubeObject } from './objects.ts';

/** Where Kubernetes objects come from: an API server or a folder of manifests. Lives on the main thread. */
export interface Source {
  start(events: SourceEvents): void;
  stop(): Promise<void>;
  /** The first complete list of every wanted kind has been delivered. Stays true when the API server goes away. */
  readonly synced: boolean;
  /** The whole present state, for a worker that joins late. Use it up before the next turn of the event loop. */
  snapshot(): Iterable<KubeObject>;
}

/** What a source tells. */
export interface SourceEvents {
  /** Never empty; in the order they happened; only what really differs from before. */
  changes(batch: readonly ObjectChange[]): void;
  /** Once per wanted kind: its first complete list has been delivered through `changes`. */
  synced(kind: ObjectKind): void;
}

/** What to bring in. Services and namespaces always come. */
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
}
