/** The plugin contract, and the data plane as plugins see it. */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Maybe } from '../../base/maybe.ts';
import type { Random } from '../../base/random.ts';
import type { Options, Syntax } from '../../corefile/syntax.ts';
import type { Registry } from '../../metrics/registry.ts';
import type { CountersOf } from '../../transport/listener-counters.ts';
import type { Network } from '../../transport/upstream-address.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import type { MessageWriter } from '../../wire/writer.ts';
import type { BlockPlan } from './block-plan.ts';
import type { Replica } from './data-set.ts';
import type { ControlContext } from './control-context.ts';
import type { NamedFiles } from './named-files.ts';

/**
 * A link in the chain. It answers a query, or queries the next link and may change its reply. If it has the reply, it
 * returns it directly. Only if it must wait does it return a promise, after calling `query.keep()`.
 */
export type Next = (query: Query) => Maybe<Reply>;

/** The cause of a reply from the end of a chain, where no plugin in the server block had an answer. */
export class NoNextPlugin extends Error {
  override readonly name = 'NoNextPlugin';
}

/**
 * One plugin: its directive's syntax, and its part in each of the two planes. `control` runs once on the main thread
 * (watches, HTTP, files), and `setup` once in every worker (answers). They communicate only over the instance's
 * channel. Each part is optional.
 */
export interface Plugin {
  readonly name: string;
  readonly syntax: Syntax;
  /**
   * True if the plugin only operates the running server or reports on it (probes, metrics, reloads), and plays no part
   * in answers. A server used only to compute answers omits it.
   */
  readonly operational?: boolean;
  /** If false, the plugin has `setup` but is not part of the chain, and is not reported as enabled. */
  readonly link?: boolean;
  /** Runs on the main thread before anything is opened, and sets listen addresses and limits. May throw a Problem. */
  plan?(options: never, plan: BlockPlan): void;
  /** Runs on the main thread. May throw a Problem, which rejects the configuration. */
  control?(options: never, context: ControlContext): Maybe<void>;
  /**
   * Runs in a worker and creates the link. It is called from the last plugin in the chain to the first. A plugin
   * without it is not a link.
   */
  setup?(options: never, context: WorkerContext, next: Next): Next;
}

/** The parts that define a plugin; see `Plugin`. */
export interface PluginParts<S extends Syntax> {
  readonly syntax: S;
  readonly operational?: boolean;
  readonly link?: boolean;
  plan?(options: Options<S>, plan: BlockPlan): void;
  control?(options: Options<S>, context: ControlContext): Maybe<void>;
  setup?(options: Options<S>, context: WorkerContext, next: Next): Next;
}

/** Returns true if the plugin is part of the chain. */
export function isLink({ setup, link }: Plugin): boolean {
  return setup !== undefined && link !== false;
}

/** Defines a plugin, whose options have the types declared by its syntax. The plugin is named after the directive. */
export function definePlugin<const S extends Syntax>(parts: PluginParts<S>): Plugin {
  return { ...parts, name: parts.syntax.name } as Plugin;
}

/**
 * A named interface through which plugins in one server block use each other without importing each other, e.g.
 * autopath and kubernetes.
 */
export interface PluginPort<T> {
  readonly name: string;
  readonly __value?: T;
}

/** Defines a port. Two ports are different even if they have the same name. */
export function definePort<T>(name: string): PluginPort<T> {
  return { name };
}

/** A worker's end of a channel to the control part of the same plugin. */
export interface WorkerChannel {
  /**
   * Receives messages from the control part. The state set by `onJoin` comes first, then everything that is published.
   */
  onMessage(handler: (message: unknown) => void): void;
  /** Sends a message to the control part, as a structured clone. */
  post(message: unknown): void;
}

/** The context for a plugin's data plane part: its position in one worker, and its instance's channel. */
export interface WorkerContext extends WorkerChannel, NamedFiles {
  /** The server block's zones: absolute, lower case. */
  readonly zones: readonly string[];
  /** Listen addresses with a scheme on which the block answers, e.g. `dns://:53`. */
  readonly servers: readonly string[];
  readonly view: string;
  readonly clock: Clock;
  readonly random: Random;
  /** A log whose lines carry the plugin's name. */
  readonly log: Log;
  readonly metrics: Registry;
  /** The thread's reply writer. It is available whenever a link runs, because links never run at the same time. */
  readonly writer: MessageWriter;
  readonly network: Network;
  /** Queries the whole server from the top of the matching block, for CNAME targets, for example. */
  readonly ask: Next;
  /** Offers `value` to the other plugins in this block. */
  offer<T>(port: PluginPort<T>, value: T): void;
  /**
   * Returns everything offered at `port` in this block. Call it after setup, when all plugins have made their offers.
   */
  find<T>(port: PluginPort<T>): readonly T[];
  /** Returns true if the block has this plugin. */
  has(plugin: string): boolean;
  /** True if this is the last plugin in the chain. */
  readonly last: boolean;
  /** Called for queries that matched no server block (`zone` label `dropped`), on any listener. */
  onDropped(run: (query: Query, reply: Reply) => void): void;
  /**
   * Lets the plugin review the replies to such queries, and the errors for messages that are not queries
   * (`Query.rejection`), before they are sent. On each listener, the first block that does so decides.
   */
  judgeDropped(judge: (query: Query, reply: Reply) => Reply): void;
  /** Returns this worker's counters for the listener of one of `servers`. */
  readonly counters: (server: string) => CountersOf;
  /** Adds a filter to this server block (`view`). The block serves a query only if all filters accept it. */
  filter(accepts: (query: Query) => boolean): void;
  /** Runs once the configuration is being served. */
  onStart(run: () => void): void;
  /** Registers a function that runs when the configuration has been replaced, or when the server ends. */
  onStop(run: () => void): void;
  /**
   * Returns this worker's copy of the data set that `ControlContext.replicated` has under the same key. `make` creates
   * it unless the previous configuration already had it. It is complete before the first query is served.
   */
  replica<T extends Replica<never, unknown>>(key: string, make: () => T): T;
  /**
   * Returns state that this worker retains from one configuration to the next. `make` creates it unless this plugin
   * already had something under the same key. For that, the block must have had the same servers, zones and view. Both
   * configurations share it during the switch.
   */
  kept<T>(key: string, make: () => T): T;
}
