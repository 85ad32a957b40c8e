/**
 * A data set owned by the control thread, with a copy in every worker: the objects in a cluster, zones, or lists of
 * nodes. The control thread publishes changes. When a worker joins, it gets a snapshot and then every change, in order
 * and without gaps. It must acknowledge each batch before the next is sent. It can therefore answer queries in between,
 * and a slow worker does not delay others. The backlog for each worker is limited. Beyond the limit it is dropped, and
 * the worker gets a new snapshot once it responds again. `C` is one change, and `R` is the value a worker returns for a
 * batch. Both are plain data that survive a structured clone.
 */
export interface DataSetParts<C, R = void> {
  /**
   * Returns everything in the set, as changes that build it from scratch. It is read piece by piece over many turns of
   * the event loop, for one worker at a time, while changes continue. Each piece must be current when it is read. Items
   * that exist throughout must be included, while items that are added or removed during the snapshot may be. Its
   * `return` is called if it is not read to the end.
   */
  snapshot(): Iterable<C>;
  /** Returns the approximate size of a change in transit, in bytes. */
  size(change: C): number;
  /**
   * Called for each batch, in order, once all responsive workers have applied it.
   * @param result what the first of them returned
   */
  applied?(result: R): void;
}

/** The control thread's end of a data set. */
export interface DataSet<C> {
  /** Sends the latest changes to workers. Any snapshot read from now on must include these changes. */
  publish(changes: Iterable<C>): void;
  /**
   * Calls `run` once every worker has applied everything, including snapshots, or immediately if that is already so.
   * Workers that have not responded for a second are ignored.
   */
  whenApplied(run: () => void): void;
  close(): void;
}

/** Opens a data set; see `ControlContext.replicated`. */
export type OpenDataSet = <C, R = void>(parts: DataSetParts<C, R>) => DataSet<C>;

/** A worker's copy of the set, in a form suitable for answering queries. */
export interface Replica<C, R = void> {
  /**
   * A snapshot begins, whether it is the first or a later one. The previous content stays valid until `complete`, and
   * is then dropped.
   */
  begin(): void;
  apply(changes: readonly C[]): R;
  /** The whole snapshot has been applied. */
  complete(): void;
}

/** A batch of changes for a worker, which must acknowledge it before the next is sent. */
export interface ReplicaBatch {
  readonly id: number;
  readonly changes: readonly unknown[];
  /** True if this is the first or the last batch of a snapshot. */
  readonly begins: boolean;
  readonly completes: boolean;
}

/** A worker's acknowledgement that it has applied the batch. */
export interface ReplicaAck {
  readonly id: number;
  readonly result: unknown;
}

const PREFIX = 'data/';

/** Returns the name of the channel used for the data set with this key. */
export function dataSetChannel(key: string): string {
  return `${PREFIX}${key}`;
}

/** Returns true if a channel carries a data set. */
export function carriesDataSet(channel: string): boolean {
  return channel.startsWith(PREFIX);
}
