/**
 * A data set that the control thread holds and every worker keeps a copy of: the objects of a cluster, zones, lists of nodes.
 *
 * The control thread publishes changes. A worker that joins is given a snapshot, and from then on every change, in order and
 * none left out. It acknowledges each batch before it is sent the next one, so that it answers queries in between however much
 * changes, and so that a worker that is slow or hangs makes nobody else wait. What it has yet to be sent is bounded: beyond the
 * bound it is forgotten, and the worker is given a new snapshot once it answers again.
 *
 * `C` is one change, `R` what a worker says of a batch; both are plain data that survive a structured clone.
 */
export interface DataSetParts<C, R = void> {
  /**
   * All that the set holds, as changes that make it out of nothing. It is read bit by bit over many turns of the event loop,
   * for one worker at a time, while changes go on: what is read must be the state of that moment. What is there all the while
   * must come, what comes or goes meanwhile may. Its `return` is called when it is not read to its end.
   */
  snapshot(): Iterable<C>;
  /** How many bytes a change takes on its way, roughly. */
  size(change: C): number;
  /**
   * Called for each batch once all workers that keep up have applied it, in order.
   * @param result what the first of them said of it
   */
  applied?(result: R): void;
}

/** The control thread's end. */
export interface DataSet<C> {
  /** Tells the workers of changes that have just been made: the snapshot shows them already. */
  publish(changes: Iterable<C>): void;
  /**
   * Calls `run` as soon as every worker has applied everything, snapshots too; at once if that is so. Workers that have not
   * answered for a second are not waited for.
   */
  whenApplied(run: () => void): void;
  /** Nobody is told anything any more. */
  close(): void;
}

/** Makes the data set of a key; see `ControlContext.replicated`. */
export type OpenDataSet = <C, R = void>(parts: DataSetParts<C, R>) => DataSet<C>;

/** A worker's end: its copy of the set, in whatever form is good for answering. */
export interface Replica<C, R = void> {
  /** A snapshot begins, the first or another one: what was known is to be answered until `complete`, and forgotten then. */
  begin(): void;
  apply(changes: readonly C[]): R;
  /** Everything that the snapshot held has been applied. */
  complete(): void;
}

/** To a worker: one batch. It is acknowledged before another is sent. */
export interface ReplicaBatch {
  readonly id: number;
  readonly changes: readonly unknown[];
  /** It is the first of a snapshot, or the last one. */
  readonly begins: boolean;
  readonly completes: boolean;
}

/** From a worker: the batch has been applied. */
export interface ReplicaAck {
  readonly id: number;
  readonly result: unknown;
}

const PREFIX = 'data/';

/** The channel that a data set of this key travels on. */
export function dataSetChannel(key: string): string {
  return `${PREFIX}${key}`;
}

/** Whether a channel carries a data set. */
export function carriesDataSet(channel: string): boolean {
  return channel.startsWith(PREFIX);
}
