/** The messages exchanged between the control thread and the workers. */
import type { ProblemParts } from '../../base/problem.ts';
import type { Corefile } from '../../corefile/corefile-tree.ts';
import type { Registration } from '../../metrics/registration.ts';
import type { EndpointPlan } from './endpoints.ts';

/** A configuration in the form sent to a worker: the tree to bind again, and the addresses to listen on. */
export interface Program {
  readonly generation: number;
  readonly corefile: Corefile;
  readonly directory: string;
  readonly endpoints: readonly EndpointPlan[];
  /** Files that were read for the configuration and found valid, by absolute path. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/**
 * Messages from the main thread to a worker. `prepare`, `open` and `close` are answered by `done` with the same `seq`.
 */
export type ToWorker =
  | { readonly kind: 'prepare'; readonly seq: number; readonly program: Program }
  | { readonly kind: 'open'; readonly seq: number; readonly generation: number }
  | { readonly kind: 'commit'; readonly seq: number; readonly generation: number }
  | { readonly kind: 'discard'; readonly seq: number; readonly generation: number }
  | { readonly kind: 'deliver'; readonly channel: string; readonly message: unknown }
  | { readonly kind: 'close'; readonly seq: number; readonly graceMs: number };

/** The last message to a worker's thread, which then ends itself in a separate turn. */
export interface EndThread {
  readonly kind: 'end';
}

export type FromWorker =
  | {
      readonly kind: 'done';
      readonly seq: number;
      readonly problem: ProblemParts | null;
      readonly ports: Readonly<Record<string, number>>;
    }
  | { readonly kind: 'join'; readonly channel: string }
  | { readonly kind: 'leave'; readonly channel: string }
  | { readonly kind: 'post'; readonly channel: string; readonly message: unknown }
  | { readonly kind: 'register'; readonly registration: Registration };
