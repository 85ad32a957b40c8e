/** The control thread's end of a data set (contract/data-set.ts). */
import type { Clock, Timer } from '../../base/clock.ts';
import type { Counter, Gauge, Registry } from '../../metrics/registry.ts';
import type { DataSet, DataSetParts, ReplicaAck, ReplicaBatch } from '../contract/data-set.ts';

/** The connections to the workers' copies of one set. */
export interface ReplicaLinks {
  send(worker: number, batch: ReplicaBatch): void;
  onJoin(handler: (worker: number) => void): void;
  onLeave(handler: (worker: number) => void): void;
  onAck(handler: (worker: number, ack: ReplicaAck) => void): void;
}

export interface ReplicatedSetParts {
  /** The kind of set, for metrics, e.g. `kubernetes`. */
  readonly name: string;
  readonly links: ReplicaLinks;
  readonly clock: Clock;
  readonly metrics: Registry;
  /** Maximum number of bytes in a batch, which a worker applies between two queries. A single change may be larger. */
  readonly batchBytes?: number;
  /** Maximum number of bytes buffered for the slowest worker. Beyond it, the worker gets a snapshot instead. */
  readonly backlogBytes?: number;
}

/** Default batch size in bytes. A worker applies a batch between two queries. */
const BATCH_BYTES = 10_000;
/** Default number of bytes buffered for the slowest worker. Beyond it, the worker gets a snapshot. */
const BACKLOG_BYTES = 16 * 1024 * 1024;
/** Milliseconds without an acknowledgement after which a worker is skipped, because it is slow, hangs or has ended. */
const LATE_MS = 1000;

/** Changes that are sent together, and are the same for all workers. */
interface Batch<C, R> {
  readonly changes: C[];
  bytes: number;
  /** Set once the batch has been sent to any worker, after which nothing more is added. */
  closed: boolean;
  result: R | undefined;
}

/** One worker's progress. At most one batch to it is in flight. */
interface Follower<C> {
  /** Number of the next batch to send. */
  next: number;
  /** All batches before this number have been acknowledged. */
  acknowledged: number;
  /** Id of the batch in flight; -1: none. */
  underWay: number;
  /** The rest of the snapshot being sent, or null. */
  snapshot: Iterator<C> | null;
  /** True if no part of the snapshot has been sent yet. */
  begins: boolean;
  /** True if the worker is too far behind for changes and needs another snapshot once it responds. */
  behind: boolean;
  late: boolean;
  /** True if `#send` is running for it. */
  sending: boolean;
  timer: Timer | null;
}

/**
 * The control thread's end of a data set, whose guarantees are defined in contract/data-set.ts. Changes are stored in
 * batches until the slowest worker has acknowledged them, and each worker gets them at its own pace. While a worker is
 * getting a snapshot, pending changes go first. Parts of the snapshot are then never older than the worker's state, so
 * nothing in the worker is ever reverted.
 */
export class ReplicatedSet<C, R> implements DataSet<C> {
  readonly #parts: ReplicatedSetParts;
  readonly #set: DataSetParts<C, R>;
  readonly #followers = new Map<number, Follower<C>>();
  readonly #log: Batch<C, R>[] = [];
  /** Number of the first batch in the log. */
  #first = 0;
  #logBytes = 0;
  /** Batches with lower numbers have been passed to `applied`. */
  #told = 0;
  #ids = 0;
  #waiting: (() => void)[] = [];
  readonly #backlog: Gauge;
  readonly #snapshots: Counter;
  readonly #overflows: Counter;

  constructor(parts: ReplicatedSetParts, set: DataSetParts<C, R>) {
    this.#parts = parts;
    this.#set = set;
    const { links, metrics, name } = parts;
    this.#backlog = metrics
      .gauge(
        'ndots_replication_backlog_bytes',
        'Changes to a data set that the slowest worker has not applied yet, in bytes.',
        ['set'],
      )
      .with(name);
    this.#snapshots = metrics
      .counter(
        'ndots_replication_snapshots_total',
        'Number of snapshots of a data set sent to workers that started or had fallen too far behind.',
        ['set'],
      )
      .with(name);
    this.#overflows = metrics
      .counter(
        'ndots_replication_overflows_total',
        'Number of times that a worker fell too far behind a data set.',
        ['set'],
      )
      .with(name);
    links.onJoin((worker) => this.#join(worker));
    links.onLeave((worker) => this.#leave(worker));
    links.onAck((worker, ack) => this.#acknowledge(worker, ack));
  }

  /** Bytes buffered for the slowest worker. */
  get backlogBytes(): number {
    return this.#logBytes;
  }

  publish(changes: Iterable<C>): void {
    for (const change of changes) this.#append(change);
    this.#trim();
    for (const [worker, follower] of this.#followers) this.#send(worker, follower);
    while (this.#logBytes > (this.#parts.backlogBytes ?? BACKLOG_BYTES)) this.#giveUpSlowest();
  }

  whenApplied(run: () => void): void {
    this.#waiting.push(run);
    this.#check();
  }

  /** Ends snapshots and timers. Nothing is sent after that. */
  close(): void {
    for (const worker of this.#followers.keys()) this.#leave(worker);
  }

  get #end(): number {
    return this.#first + this.#log.length;
  }

  #append(change: C): void {
    const bytes = this.#set.size(change);
    let batch = this.#log.at(-1);
    if (batch === undefined || batch.closed || !this.#hasRoom(batch, bytes)) {
      batch = { changes: [], bytes: 0, closed: false, result: undefined };
      this.#log.push(batch);
    }
    batch.changes.push(change);
    batch.bytes += bytes;
    this.#logBytes += bytes;
  }

  #hasRoom(batch: { readonly bytes: number }, bytes: number): boolean {
    return batch.bytes === 0 || batch.bytes + bytes <= (this.#parts.batchBytes ?? BATCH_BYTES);
  }

  #join(worker: number): void {
    this.#leave(worker);
    const follower: Follower<C> = {
      next: 0,
      acknowledged: 0,
      underWay: -1,
      snapshot: null,
      begins: false,
      behind: true,
      late: false,
      sending: false,
      timer: null,
    };
    this.#followers.set(worker, follower);
    this.#send(worker, follower);
  }

  #leave(worker: number): void {
    const follower = this.#followers.get(worker);
    if (follower === undefined) return;
    this.#followers.delete(worker);
    follower.timer?.cancel();
    follower.snapshot?.return?.();
    this.#trim();
    this.#check();
  }

  /** Sends batches to a worker until one is in flight, and continues if acknowledgements arrive synchronously. */
  #send(worker: number, follower: Follower<C>): void {
    if (follower.sending) return;
    follower.sending = true;
    while (follower.underWay < 0 && this.#sendNext(worker, follower));
    follower.sending = false;
  }

  /** Sends one batch. Returns false if there is none. */
  #sendNext(worker: number, follower: Follower<C>): boolean {
    if (follower.behind) this.#beginSnapshot(follower);
    let changes: readonly C[];
    let completes = false;
    const { begins } = follower;
    if (follower.next < this.#end && !begins) {
      const batch = this.#log[follower.next++ - this.#first]!;
      batch.closed = true;
      ({ changes } = batch);
    } else if (follower.snapshot !== null) {
      changes = this.#readOn(follower);
      completes = follower.snapshot === null;
      follower.begins = false;
    } else return false;
    follower.underWay = this.#ids++;
    follower.timer = this.#parts.clock.after(LATE_MS, () => {
      follower.late = true;
      this.#trim();
      this.#check();
    });
    this.#parts.links.send(worker, { id: follower.underWay, changes, begins, completes });
    return true;
  }

  #beginSnapshot(follower: Follower<C>): void {
    this.#snapshots.add(1);
    // The snapshot includes everything published so far.
    const last = this.#log.at(-1);
    if (last !== undefined) last.closed = true;
    follower.next = this.#end;
    follower.acknowledged = this.#end;
    follower.snapshot = this.#set.snapshot()[Symbol.iterator]();
    follower.begins = true;
    follower.behind = false;
  }

  /** Returns the next part of the snapshot. At the end, `snapshot` becomes null. */
  #readOn(follower: Follower<C>): C[] {
    const part = { changes: [] as C[], bytes: 0 };
    const snapshot = follower.snapshot!;
    do {
      const { done, value } = snapshot.next();
      if (done === true) {
        follower.snapshot = null;
        break;
      }
      part.changes.push(value);
      part.bytes += this.#set.size(value);
    } while (this.#hasRoom(part, 1));
    return part.changes;
  }

  #acknowledge(worker: number, { id, result }: ReplicaAck): void {
    const follower = this.#followers.get(worker);
    if (follower === undefined || follower.underWay !== id) return;
    follower.underWay = -1;
    follower.late = false;
    follower.timer?.cancel();
    follower.timer = null;
    if (!follower.behind && follower.acknowledged < follower.next) {
      const batch = this.#log[follower.acknowledged++ - this.#first]!;
      batch.result ??= result as R;
    }
    this.#trim();
    this.#send(worker, follower);
    this.#check();
  }

  /** Switches the worker that is farthest behind to a snapshot, to make room in the log. */
  #giveUpSlowest(): void {
    let slowest: Follower<C> | null = null;
    for (const follower of this.#followers.values()) {
      if (follower.behind) continue;
      if (slowest === null || follower.acknowledged < slowest.acknowledged) slowest = follower;
    }
    if (slowest !== null) {
      this.#overflows.add(1);
      slowest.behind = true;
      slowest.snapshot?.return?.();
      slowest.snapshot = null;
    }
    this.#trim();
  }

  /** Passes on the results of applied batches, and drops batches that no worker needs any more. */
  #trim(): void {
    let needed = this.#end;
    let applied = this.#end;
    for (const { behind, late, acknowledged } of this.#followers.values()) {
      if (behind) continue;
      needed = Math.min(needed, acknowledged);
      if (!late) applied = Math.min(applied, acknowledged);
    }
    for (; this.#told < applied; this.#told++) {
      const result = this.#log[this.#told - this.#first]?.result;
      if (result !== undefined) this.#set.applied?.(result);
    }
    const gone = this.#log.splice(0, needed - this.#first);
    for (const { bytes } of gone) this.#logBytes -= bytes;
    this.#first = needed;
    this.#backlog.set(this.#logBytes);
  }

  #check(): void {
    for (const { late, behind, underWay, next, snapshot } of this.#followers.values()) {
      const busy = behind || underWay >= 0 || snapshot !== null || next < this.#end;
      if (busy && !late) return;
    }
    for (const run of this.#waiting.splice(0)) run();
  }
}
