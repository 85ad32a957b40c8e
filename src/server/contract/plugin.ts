/** What a plugin is, and what it sees of the data plane. */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Maybe } from '../../base/maybe.ts';
import type { Random } from '../../base/random.ts';
import type { Options, Syntax } from '../../corefile/syntax.ts';
import type { Registry } from '../../metrics/registry.ts';
import type { CountersOf } from '../../net/listener-counters.ts';
import type { Network } from '../../net/network.ts';
import type { Query } from '../../wire/query.ts';
import type { Reply } from '../../wire/reply.ts';
import type { MessageWriter } from '../../wire/writer.ts';
import type { BlockPlan } from './plan.ts';
import type { Replica } from './data-set.ts';
import type { ControlContext } from './control-context.ts';

/**
 * A link of the chain: answers a query, or asks the next link and perhaps changes its reply. It returns the reply itself
 * when it has it: only what must wait returns a promise, and only after `query.keep()`.
 */
export type Next = (query: Query) => Maybe<Reply>;

/** The cause of a reply from the end of a chain: no plugin of the server block had an answer. */
export class NoNextPlugin extends Error {
  override readonly name = 'NoNextPlugin';
}

/**
 * One plugin: what its directive looks like, and what it does in each of the two planes.
 *
 * A plugin lives in both planes: `control` runs once on the main thread (watches, HTTP, files), `setup` once in every
 * worker (answers). They talk only over the instance's channel. Each part is optional.
 */
export interface Plugin {
  readonly name: string;
  readonly syntax: Syntax;
  /**
   * It looks after the running server or tells of it (probes, metrics, reloads) and has no part in answers. A server that is
   * only asked what it would answer does without.
   */
  readonly operational?: boolean;
  /** False: what it does in the worker is beside the chain, though it has `setup`; it is not told of as enabled. */
  readonly link?: boolean;
  /** Main thread, before anything is opened: listeners, addresses, limits. May throw a Problem. */
  plan?(options: never, plan: BlockPlan): void;
  /** Main thread. May throw a Problem; the configuration is then not taken. */
  control?(options: never, context: ControlContext): Maybe<void>;
  /** Worker: gives the link; called from the last plugin of the chain to the first. A plugin without it is no link. */
  setup?(options: never, context: WorkerContext, next: Next): Next;
}

/** What a plugin is made of; see `Plugin`. */
export interface PluginParts<S extends Syntax> {
  readonly syntax: S;
  readonly operational?: boolean;
  readonly link?: boolean;
  plan?(options: Options<S>, plan: BlockPlan): void;
  control?(options: Options<S>, context: ControlContext): Maybe<void>;
  setup?(options: Options<S>, context: WorkerContext, next: Next): Next;
}

/** Whether the plugin stands in the chain. */
export function isLink({ setup, link }: Plugin): boolean {
  return setup !== undefined && link !== false;
}

/** Makes a plugin whose options have the types that its syntax declares. The plugin's name is the directive's. */
export function definePlugin<const S extends Syntax>(parts: PluginParts<S>): Plugin {
  return { ...parts, name: parts.syntax.name } as Plugin;
}

/** A meeting point of plugins of one server block, e.g. autopath and kubernetes. */
export interface Port<T> {
  readonly name: string;
  readonly __value?: T;
}

/** Makes a port. Two ports of one name are two ports. */
export function definePort<T>(name: string): Port<T> {
  return { name };
}

/** A worker's end of a channel to the control part of the same plugin. */
export interface WorkerChannel {
  /** Messages from the control part: first the state of `onJoin`, then all that is published. */
  onMessage(handler: (message: unknown) => void): void;
  /** Sends a message (structured clone) to the control part. */
  post(message: unknown): void;
}

/** What a plugin's data plane part gets: its place in one worker, and the channel of its instance. */
export interface WorkerContext extends WorkerChannel {
  /** The server block's zones: absolute, lower case. */
  readonly zones: readonly string[];
  /** Listen addresses with scheme that the block answers on, e.g. `dns://:53`. */
  readonly servers: readonly string[];
  /** Name of the block's view, or empty. */
  readonly view: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Lines carry the plugin's name. */
  readonly log: Log;
  readonly metrics: Registry;
  /** The thread's writer of replies; free whenever a link runs, since links do not interleave. */
  readonly writer: MessageWriter;
  /** Sockets towards upstreams. */
  readonly network: Network;
  /** Asks the whole server again, from the top of the block that fits (CNAME targets and the like). */
  readonly ask: Next;
  /** Makes `value` findable for the other plugins of this block. */
  offer<T>(port: Port<T>, value: T): void;
  /** Everything offered at `port` in this block; call it after setup, when all plugins have had their turn. */
  find<T>(port: Port<T>): readonly T[];
  /** Whether a plugin stands in this block. */
  has(plugin: string): boolean;
  /** No plugin stands behind this one: nobody else would answer. */
  readonly last: boolean;
  /** An absolute path for a file named in the Corefile (`root` applies). */
  path(file: string): string;
  /** Tells of queries that no server block took (`zone` label `dropped`), whichever listener they came to. */
  onDropped(run: (query: Query, reply: Reply) => void): void;
  /**
   * Has replies to such queries judged before they are sent, and the errors that messages get which are none (`Query.rejection`): those of
   * a listener by the first block there that does.
   */
  judgeDropped(judge: (query: Query, reply: Reply) => Reply): void;
  /** What the listener of one of `servers` counts in this worker. */
  readonly counters: (server: string) => CountersOf;
  /** A filter of this server block (`view`): it takes a query only if all filters say so. */
  filter(accepts: (query: Query) => boolean): void;
  /** Runs once the configuration serves. */
  onStart(run: () => void): void;
  /** Runs when the configuration has been replaced or the server ends. */
  onStop(run: () => void): void;
  /**
   * This worker's copy of the data set that `ControlContext.replicated` has under the same key: made by `make` unless the
   * configuration before had it already. It is complete when the first query comes.
   */
  replica<T extends Replica<never, unknown>>(key: string, make: () => T): T;
  /**
   * What this worker keeps from one configuration to the next: made by `make` unless this plugin had something under the same key before, in
   * the block of the same servers, zones and view. Both configurations have it while they change.
   */
  kept<T>(key: string, make: () => T): T;
}
