/** A worker's end of a data set. */
import type { Replica, ReplicaAck, ReplicaBatch } from '../contract/data-set.ts';
import type { WorkerChannel } from '../contract/plugin.ts';

export type AnyReplica = Replica<never, unknown>;

/** A worker's copy of a data set, and when it is complete. */
export interface FollowedReplica {
  readonly replica: AnyReplica;
  /** Resolves when the first snapshot has been applied. */
  readonly complete: Promise<void>;
}

/** Applies the batches that arrive over the channel to the replica, and acknowledges them. */
export function followDataSet(replica: AnyReplica, channel: WorkerChannel): FollowedReplica {
  const { promise, resolve } = Promise.withResolvers<void>();
  channel.onMessage((message) => {
    const { id, changes, begins, completes } = message as ReplicaBatch;
    if (begins) replica.begin();
    const result = replica.apply(changes as readonly never[]);
    if (completes) {
      replica.complete();
      resolve();
    }
    channel.post({ id, result } satisfies ReplicaAck);
  });
  return { replica, complete: promise };
}
