/**
 * A data set that the control thread owns and every worker has a copy of: the objects of a cluster,
 * zones, lists of nodes.
 *
 * The control thread publishes changes. A worker that joins gets a snapshot and then every change,
 * in order, with none left out. It acknowledges each batch before the next one is sent. So it
 * answers queries in between, and a slow worker does not delay others. The backlog for each worker
 * is limited: beyond the limit it is dropped, and the worker gets a new snapshot once it responds
 * again.
 *
 * `C` is one change, `R` what a worker returns for a batch; both are plain data that survive a
 * structured clone.
 */
export interface DataSetParts<C, R = void> {
  /**
   * Everything in the set, as changes that build it from nothing. It is read piece by piece over
   * many turns of the event loop, for one worker at a time, while changes continue: each piece must
   * be current when it is read. Items that exist all the time must be included; items that are
   * added or removed during the snapshot may be. Its `return` is called if it is not read to the
   * end.
   */
  snapshot(): Iterable<C>;
  /** The approximate number of bytes of a change in transit. */
  size(change: C): number;
  /**
   * Called for each batch, in order, once all responsive workers have applied it.
   * @param result what the first of them returned
   */
  applied?(result: R): void;
}

/** The control thread's end of a data set. */
export interface DataSet<C> {
  /**
   * Sends workers changes that have just been made; a snapshot read from now on must include them.
   */
  publish(changes: Iterable<C>): void;
  /**
   * Calls `run` once every worker has applied everything, snapshots included; at once if that is so
   * already. Workers that have not responded for a second are not waited for.
   */
  whenApplied(run: () => void): void;
  /** Stops sending. */
  close(): void;
}

/** Opens a data set; see `ControlContext.replicated`. */
export type OpenDataSet = <C, R = void>(parts: DataSetParts<C, R>) => DataSet<C>;

/** A worker's copy of the set, in a form that suits answering. */
export interface Replica<C, R = void> {
  /**
   * A snapshot begins, the first or a later one: the previous content stays valid until `complete`,
   * and is dropped then.
   */
  begin(): void;
  apply(changes: readonly C[]): R;
  /** The whole snapshot has been applied. */
  complete(): void;
}

/** A batch of changes for a worker, which acknowledges it before the next is sent. */
export interface ReplicaBatch {
  readonly id: number;
  readonly changes: readonly unknown[];
  /** True if it is the first batch of a snapshot, or the last one. */
  readonly begins: boolean;
  readonly completes: boolean;
}

/** A worker's acknowledgement that it has applied the batch. */
export interface ReplicaAck {
  readonly id: number;
  readonly result: unknown;
}

const PREFIX = 'data/';

/** The name of the channel for the data set with this key. */
export function dataSetChannel(key: string): string {
  return `${PREFIX}${key}`;
}

/** True if a channel carries a data set. */
export function carriesDataSet(channel: string): boolean {
  return channel.startsWith(PREFIX);
}
