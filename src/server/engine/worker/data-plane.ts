/** One worker: its listeners, and the configurations it serves one after another. */
import type { Clock } from '../../base/clock.ts';
import { bugText, type Log } from '../../base/log.ts';
import { Problem, type ProblemParts } from '../../base/problem.ts';
import type { Random } from '../../base/random.ts';
import { whyFailed } from '../../base/why-failed.ts';
import type { Registry } from '../../metrics/registry.ts';
import { listenerCounters, type CountersOf } from '../../transport/listener-counters.ts';
import type { Listener, ListenerTerms, Serve } from '../../transport/listener.ts';
import type { Network } from '../../transport/upstream-address.ts';
import type { Query, Route } from '../../transport/query.ts';
import { silence, type Reply } from '../../wire/reply.ts';
import { MessageWriter } from '../../wire/writer.ts';
import { bindConfiguration, namesIn } from '../contract/configuration.ts';
import { dataSetChannel } from '../contract/data-set.ts';
import type { EndpointPlan } from '../contract/endpoints.ts';
import { answer, type ServedEndpoint } from './endpoint.ts';
import { followDataSet, type AnyReplica, type FollowedReplica } from './follow-data-set.ts';
import { buildGeneration, withoutText, type Generation, type WorkerParts } from './generation.ts';
import type { Plugin, WorkerChannel } from '../contract/plugin.ts';
import type { FromWorker, Program, ToWorker } from '../contract/protocol.ts';

export interface DataPlaneParts {
  /** Loads the plugins for these directives, in chain order. */
  readonly plugins: (names: ReadonlySet<string>) => Promise<readonly Plugin[]>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
  readonly network: Network;
  /** Opens the transports for a listen address. An in-memory server has none. */
  readonly listen: (
    endpoint: EndpointPlan,
    serve: Serve,
    counters: CountersOf,
    files: Program['files'],
  ) => Listener;
  /** Returns a plan's limits and certificate, or undefined if there are no transports. May throw a Problem. */
  readonly terms?: (endpoint: EndpointPlan, files: Program['files']) => ListenerTerms;
  readonly send: (message: FromWorker) => void;
  /** Called when a plugin threw and `debug` says not to catch it. Ends the worker. */
  readonly crash: (error: unknown) => void;
  /** Runs last, after everything has been closed. */
  readonly onClosed?: () => void;
  /** Runs once, when the first configuration is served. */
  readonly onServing?: () => void;
  /** Runs whenever a configuration has been dropped. */
  readonly onDropped?: () => void;
}

interface OpenListener {
  readonly listener: Listener;
  endpoint: ServedEndpoint | null;
  /** Queries that arrived before the address was served; see `#whenServing`. */
  readonly early: (() => void)[];
}

/** A configuration that is being served or is about to be. */
interface PreparedConfiguration {
  readonly endpoints: Program['endpoints'];
  readonly files: Program['files'];
  readonly built: Generation;
  /** Channels in use. */
  readonly used: Set<string>;
  /** Keys of the objects that the next configuration takes over. */
  readonly kept: ReadonlySet<string>;
  /** Changes to listeners that stay open, applied when the configuration starts to serve. */
  readonly adoptions: (() => void)[];
}

/**
 * One worker, which owns sockets, answers queries, and is controlled by messages (protocol.ts). Its listeners stay open
 * across reloads. A new configuration takes over a listener with a single assignment, so no query is lost, and each is
 * answered by only one configuration.
 */
export class DataPlane {
  readonly #parts: DataPlaneParts;
  readonly #writer = new MessageWriter();
  readonly #open = new Map<string, OpenListener>();
  readonly #prepared = new Map<number, PreparedConfiguration>();
  #serving: number | null = null;
  readonly #joined = new Set<string>();
  readonly #handlers = new Map<string, (message: unknown) => void>();
  /** Messages that arrived before their handler was set. */
  readonly #early = new Map<string, unknown[]>();
  readonly #replicas = new Map<string, FollowedReplica>();
  /** Plugin state that outlives a configuration, by key. */
  readonly #kept = new Map<string, unknown>();
  readonly #routes = new Map<string, Route>();
  readonly #counters = new Map<string, CountersOf>();

  constructor(parts: DataPlaneParts) {
    this.#parts = parts;
  }

  async handle(message: ToWorker): Promise<void> {
    if (message.kind === 'deliver') return this.#deliver(message.channel, message.message);
    let problem: ProblemParts | null = null;
    try {
      await this.#carryOut(message);
    } catch (error) {
      problem =
        error instanceof Problem ? error.parts : { code: 'worker-failed', text: bugText(error) };
    }
    const ports = Object.fromEntries(
      [...this.#open].map(([server, { listener }]) => [server, listener.port]),
    );
    this.#parts.send({ kind: 'done', seq: message.seq, problem, ports });
  }

  async #carryOut(message: Exclude<ToWorker, { kind: 'deliver' }>): Promise<void> {
    switch (message.kind) {
      case 'prepare':
        return this.#prepare(message.program);
      case 'open':
        return this.#openListeners(message.generation);
      case 'commit':
        return this.#commit(message.generation);
      case 'discard':
        return this.#discard(message.generation);
      case 'close':
        return this.#close(message.graceMs);
    }
  }

  async #prepare(program: Program): Promise<void> {
    const plugins = await this.#parts.plugins(namesIn(program.corefile));
    const { blocks, problems } = bindConfiguration(program.corefile, plugins);
    if (problems[0] !== undefined) throw problems[0];
    const { generation, endpoints, files } = program;
    const used = new Set<string>();
    const kept = new Set<string>();
    let built: Generation;
    try {
      const parts = this.#worker(program, used, kept);
      built = buildGeneration(blocks.map(withoutText), endpoints, generation, parts);
    } catch (error) {
      this.#forgetChannels(used);
      this.#forgetKept(kept);
      throw error;
    }
    this.#prepared.set(generation, { endpoints, files, built, used, kept, adoptions: [] });
    // Channels are not joined until now, so that the state sent by the main thread finds its handlers.
    for (const channel of used) if (!this.#joined.has(channel)) this.#join(channel);
  }

  #join(channel: string): void {
    this.#joined.add(channel);
    this.#parts.send({ kind: 'join', channel });
  }

  #worker({ directory, files }: Program, used: Set<string>, kept: Set<string>): WorkerParts {
    const { clock, random, log, metrics, network, crash } = this.#parts;
    const channel = (id: string): WorkerChannel => {
      used.add(id);
      return {
        onMessage: (handler) => {
          this.#handlers.set(id, handler);
          for (const message of this.#early.get(id) ?? []) handler(message);
          this.#early.delete(id);
        },
        post: (message) => this.#parts.send({ kind: 'post', channel: id, message }),
      };
    };
    return {
      clock,
      random,
      log,
      metrics,
      network,
      crash,
      directory,
      files,
      writer: this.#writer,
      channel,
      counters: (server) => this.#countersAt(server),
      replica: <T extends AnyReplica>(key: string, make: () => T): T => {
        const id = dataSetChannel(key);
        used.add(id);
        let followed = this.#replicas.get(id);
        if (followed === undefined) {
          followed = followDataSet(make(), channel(id));
          this.#replicas.set(id, followed);
        }
        return followed.replica as T;
      },
      kept: <T>(key: string, make: () => T): T => {
        kept.add(key);
        if (!this.#kept.has(key)) this.#kept.set(key, make());
        return this.#kept.get(key) as T;
      },
      route: (server, zone, view) => {
        const key = `${server} ${zone} ${view}`;
        let route = this.#routes.get(key);
        if (route === undefined) {
          route = { index: this.#routes.size, server, zone, view };
          this.#routes.set(key, route);
        }
        return route;
      },
    };
  }

  #countersAt(server: string): CountersOf {
    let counters = this.#counters.get(server);
    if (counters === undefined) {
      counters = listenerCounters(this.#parts.metrics, server);
      this.#counters.set(server, counters);
    }
    return counters;
  }

  #deliver(channel: string, message: unknown): void {
    const handler = this.#handlers.get(channel);
    if (handler !== undefined) return handler(message);
    // Messages for a closed channel are dropped.
    if (!this.#joined.has(channel)) return;
    this.#early.set(channel, [...(this.#early.get(channel) ?? []), message]);
  }

  async #openListeners(generation: number): Promise<void> {
    const { endpoints, files, used, adoptions } = this.#prepared.get(generation)!;
    // Before its data sets are complete, a worker would deny names that exist.
    for (const id of used) await this.#replicas.get(id)?.complete;
    const fresh: string[] = [];
    try {
      for (const endpoint of endpoints) {
        const kept = this.#open.get(endpoint.server);
        if (kept !== undefined) {
          const terms = this.#parts.terms?.(endpoint, files);
          if (terms !== undefined) adoptions.push(() => kept.listener.adopt(terms));
          continue;
        }
        const open: OpenListener = {
          endpoint: null,
          early: [],
          listener: this.#parts.listen(
            endpoint,
            (query) =>
              open.endpoint === null
                ? this.#whenServing(open, query)
                : answer(open.endpoint, query),
            this.#countersAt(endpoint.server),
            files,
          ),
        };
        await open.listener.open();
        this.#open.set(endpoint.server, open);
        fresh.push(endpoint.server);
      }
    } catch (error) {
      for (const server of fresh) await this.#shut(server, 0);
      throw error;
    }
  }

  /**
   * Holds back a query that arrived before the configuration serves. This can happen briefly while the other sockets
   * are being opened.
   */
  async #whenServing(open: OpenListener, query: Query): Promise<Reply> {
    const kept = query.keep();
    await new Promise<void>((resolve) => open.early.push(resolve));
    return open.endpoint === null ? silence : answer(open.endpoint, kept);
  }

  /**
   * Switches to the new configuration, which answers every query from now on. Listeners that it does not use are
   * closed.
   */
  async #commit(generation: number): Promise<void> {
    const { built, endpoints, adoptions } = this.#prepared.get(generation)!;
    const before = this.#serving;
    this.#serving = generation;
    for (const [server, endpoint] of built.served) this.#open.get(server)!.endpoint = endpoint;
    for (const adopt of adoptions.splice(0)) this.#adopt(adopt);
    built.start();
    for (const { early } of this.#open.values()) for (const begin of early.splice(0)) begin();
    const wanted = new Set(endpoints.map(({ server }) => server));
    const gone = [...this.#open.keys()].filter((server) => !wanted.has(server));
    await Promise.all(gone.map((server) => this.#shut(server, 5000)));
    if (before === null) this.#parts.onServing?.();
    else this.#discard(before);
  }

  /**
   * Applies new settings to a listener. The certificate was checked with the configuration, but its file may have
   * changed since.
   */
  #adopt(adopt: () => void): void {
    try {
      adopt();
    } catch (error) {
      this.#parts.log.error(
        `a listener keeps its certificate and settings, because the new ones are unusable: ${whyFailed(error)}`,
      );
    }
  }

  /** Drops a configuration that was replaced or was never served. */
  #discard(generation: number): void {
    const prepared = this.#prepared.get(generation);
    if (prepared === undefined) return;
    this.#prepared.delete(generation);
    prepared.built.stop();
    this.#forgetChannels(prepared.used);
    this.#forgetKept(prepared.kept);
    this.#parts.onDropped?.();
  }

  /** Drops the state under these keys, unless another configuration uses it. */
  #forgetKept(keys: ReadonlySet<string>): void {
    const others = [...this.#prepared.values()];
    for (const key of keys) if (!others.some(({ kept }) => kept.has(key))) this.#kept.delete(key);
  }

  /** Leaves any of these channels that no configuration uses any more. */
  #forgetChannels(used: ReadonlySet<string>): void {
    const inUse = new Set([...this.#prepared.values()].flatMap((other) => [...other.used]));
    for (const channel of used) {
      if (inUse.has(channel)) continue;
      this.#handlers.delete(channel);
      this.#early.delete(channel);
      this.#replicas.delete(channel);
      if (this.#joined.delete(channel)) this.#parts.send({ kind: 'leave', channel });
    }
  }

  async #shut(server: string, graceMs: number): Promise<void> {
    const open = this.#open.get(server);
    if (open === undefined) return;
    this.#open.delete(server);
    for (const giveUp of open.early.splice(0)) giveUp();
    await open.listener.close(graceMs);
  }

  async #close(graceMs: number): Promise<void> {
    await Promise.all([...this.#open.keys()].map((server) => this.#shut(server, graceMs)));
    for (const generation of [...this.#prepared.keys()]) this.#discard(generation);
    this.#parts.onClosed?.();
  }

  /** True if a block with `debug` is served. */
  get debugging(): boolean {
    return [...this.#open.values()].some(({ endpoint }) => endpoint?.debug === true);
  }
}
