/** Channels between plugins' control parts and their parts in workers. */
import type { ControlChannel } from '../contract/control-context.ts';
import { carriesDataSet, type ReplicaAck, type ReplicaBatch } from '../contract/data-set.ts';
import type { ReplicaLinks } from './replicated-set.ts';
import type { WorkerLink } from './worker-link.ts';

interface PluginChannel {
  readonly members: Map<number, WorkerLink>;
  state: (() => Iterable<unknown>) | null;
  handler: ((message: unknown, worker: number) => void) | null;
  joined: ((worker: number) => void) | null;
  left: ((worker: number) => void) | null;
}

/** The main thread's ends of all channels: the message receivers, and the first messages for a new worker. */
export class Channels {
  readonly #channels = new Map<string, PluginChannel>();

  #get(id: string): PluginChannel {
    let channel = this.#channels.get(id);
    if (channel === undefined) {
      channel = { members: new Map(), state: null, handler: null, joined: null, left: null };
      this.#channels.set(id, channel);
    }
    return channel;
  }

  /** Returns the control end of a plugin's channel. */
  control(id: string): ControlChannel {
    const channel = this.#get(id);
    return {
      publish(message, transfer) {
        for (const worker of channel.members.values()) {
          worker.deliver(id, message, channel.members.size === 1 ? transfer : undefined);
        }
        return channel.members.size;
      },
      onJoin: (state) => {
        channel.state = state;
      },
      onMessage: (handler) => {
        channel.handler = handler;
      },
      workers: () => channel.members.size,
    };
  }

  /**
   * Returns the control end of a channel that carries a data set. On such a channel, workers get different messages,
   * because their progress differs.
   */
  replicas(id: string): ReplicaLinks {
    const channel = this.#get(id);
    return {
      send: (worker, batch) => channel.members.get(worker)?.deliver(id, batch),
      onJoin: (handler) => {
        channel.joined = handler;
      },
      onLeave: (handler) => {
        channel.left = handler;
      },
      onAck: (handler) => {
        channel.handler = (message, worker) => handler(worker, message as ReplicaAck);
      },
    };
  }

  /** Adds a worker to a channel. It receives the current state first, and then everything that is published. */
  join(worker: WorkerLink, id: string): void {
    const channel = this.#get(id);
    for (const message of channel.state?.() ?? []) worker.deliver(id, message);
    channel.members.set(worker.id, worker);
    if (channel.joined !== null) channel.joined(worker.id);
    else if (carriesDataSet(id)) worker.deliver(id, emptySet);
  }

  leave(worker: WorkerLink, id: string): void {
    const channel = this.#channels.get(id);
    if (channel !== undefined) remove(channel, worker);
  }

  post(worker: WorkerLink, id: string, message: unknown): void {
    this.#channels.get(id)?.handler?.(message, worker.id);
  }

  /** Removes a worker that has ended from all channels. */
  forget(worker: WorkerLink): void {
    for (const channel of this.#channels.values()) remove(channel, worker);
  }

  /** Removes a configuration's channels when it is no longer served. */
  drop(accepts: (id: string) => boolean): void {
    for (const id of this.#channels.keys()) if (accepts(id)) this.#channels.delete(id);
  }
}

/** Sent to a worker if a data set is not open, so that the worker does not wait for a snapshot. */
const emptySet: ReplicaBatch = { id: -1, changes: [], begins: true, completes: true };

/** Removes the worker from the channel, unless a replacement with the same id is already there. */
function remove({ members, left }: PluginChannel, worker: WorkerLink): void {
  if (members.get(worker.id) !== worker) return;
  members.delete(worker.id);
  left?.(worker.id);
}
