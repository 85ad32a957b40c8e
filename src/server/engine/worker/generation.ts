/** The chains of one configuration. */
import { appendTo } from '../../base/append-to.ts';
import { resolve } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { bugText, pluginLog, type Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import type { Registry } from '../../metrics/registry.ts';
import type { Network } from '../../transport/upstream-address.ts';
import { EDE, RCODE } from '../../wire/iana.ts';
import { parseName } from '../../wire/name.ts';
import type { Query, Route } from '../../transport/query.ts';
import { failure, type ExtendedError, type Reply } from '../../wire/reply.ts';
import type { MessageWriter } from '../../wire/writer.ts';
import type { BoundBlock } from '../contract/configuration.ts';
import type { EndpointPlan } from '../contract/endpoints.ts';
import { answerLookup, type ServedEndpoint } from './endpoint.ts';
import {
  isLink,
  NoNextPlugin,
  type Next,
  type PluginPort,
  type WorkerContext,
  type WorkerChannel,
} from '../contract/plugin.ts';
import { recorded } from './recorded-link.ts';
import { ZoneTable } from './router.ts';

export interface WorkerParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
  readonly network: Network;
  readonly writer: MessageWriter;
  /** The Corefile's directory, the base for relative paths. */
  readonly directory: string;
  /** See `Program.files`. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Returns the worker's end of a channel, which is joined once the configuration has been built. */
  channel(id: string): WorkerChannel;
  replica: WorkerContext['replica'];
  kept: WorkerContext['kept'];
  counters: WorkerContext['counters'];
  /** Called when a plugin threw and `debug` says not to catch it. */
  crash(error: unknown): void;
  /** Returns the route with these labels. Equal labels give the same route for as long as the worker exists. */
  route(server: string, zone: string, view: string): Route;
}

/** One configuration, as served by a worker. */
export interface Generation {
  /** By listen address. */
  readonly served: ReadonlyMap<string, ServedEndpoint>;
  start(): void;
  stop(): void;
}

/** A server block without the words from which it was parsed. */
export type ServedBlock = Omit<BoundBlock, 'block'>;

/** Removes a configuration's words, which would otherwise stay in each worker's memory for as long as it is served. */
export function withoutText({ zones, instances, plan, view, sound }: BoundBlock): ServedBlock {
  return { zones, instances, plan, view, sound };
}

/** Builds the chains of all server blocks, last plugin first, and the endpoints that lead to them. */
export function buildGeneration(
  blocks: readonly ServedBlock[],
  endpoints: readonly EndpointPlan[],
  generation: number,
  worker: WorkerParts,
): Generation {
  const starts: (() => void)[] = [];
  const stops: (() => void)[] = [];
  const built = blocks.map((bound, index) => {
    const servers = endpoints
      .filter(({ zones }) => zones.some(({ block }) => block === index))
      .map(({ server }) => server);
    return buildBlock(bound, servers, {
      generation,
      worker,
      starts,
      stops,
      ask: (query) => ask(query),
    });
  });
  const served = new Map(
    endpoints.map((endpoint) => [endpoint.server, serveEndpoint(endpoint, blocks, built, worker)]),
  );
  const byServer = (query: Query): ServedEndpoint | undefined =>
    served.get(query.route.server) ?? served.values().next().value;
  const ask: Next = (query) => {
    const served = byServer(query);
    if (served === undefined) return failure(RCODE.SERVFAIL, '');
    query.via = query.route;
    return answerLookup(served, query);
  };
  return {
    served,
    start: () => runAll(starts, worker.log),
    stop: () => runAll(stops, worker.log),
  };
}

/** Runs hooks. If one throws, this is logged and the others still run. */
function runAll(hooks: readonly (() => void)[], log: Log): void {
  for (const run of hooks) {
    try {
      run();
    } catch (error) {
      log.error(`a plugin failed while starting or stopping because of a bug: ${bugText(error)}`);
    }
  }
}

/** One server block's chain, and its plugins' other settings. */
interface BuiltBlock {
  readonly chain: Next | null;
  readonly filters: readonly ((query: Query) => boolean)[];
  readonly dropped: readonly ((query: Query, reply: Reply) => void)[];
  readonly judges: readonly ((query: Query, reply: Reply) => Reply)[];
}

/** The input for all blocks of one configuration. */
interface GenerationParts {
  readonly generation: number;
  readonly worker: WorkerParts;
  /** Start and stop hooks of all blocks, in the order in which they were set. */
  readonly starts: (() => void)[];
  readonly stops: (() => void)[];
  /** Queries the whole server. */
  readonly ask: Next;
}

const nobodyAnswers: readonly ExtendedError[] = [
  { code: EDE.OTHER, text: 'no plugin of the server block answers this name' },
];

function buildBlock(
  { zones, instances, plan, view }: ServedBlock,
  servers: readonly string[],
  { generation, worker, starts, stops, ask }: GenerationParts,
): BuiltBlock {
  const offers = new Map<PluginPort<unknown>, unknown[]>();
  const filters: ((query: Query) => boolean)[] = [];
  const dropped: ((query: Query, reply: Reply) => void)[] = [];
  const judges: ((query: Query, reply: Reply) => Reply)[] = [];
  const names = new Set(instances.map(({ plugin }) => plugin.name));
  const last = instances.findLast(({ plugin }) => isLink(plugin));
  if (instances.length === 0) return { chain: null, filters, dropped, judges };
  const lastName = last?.plugin.name ?? instances.at(-1)!.plugin.name;
  const nobody = new NoNextPlugin(`plugin/${lastName}: no next plugin found`);
  const end = failure(RCODE.SERVFAIL, lastName, nobody, nobodyAnswers);
  let next: Next = () => end;
  for (const { plugin, options, id } of instances.toReversed()) {
    if (plugin.setup === undefined) continue;
    const { clock, random, metrics, network, writer, replica, counters } = worker;
    let channel: WorkerChannel | null = null;
    const ownChannel = (): WorkerChannel => (channel ??= worker.channel(`${generation}/${id}`));
    const path = (file: string): string => resolve(worker.directory, plan.root, file);
    const context: WorkerContext = {
      zones,
      servers,
      view,
      clock,
      random,
      log: pluginLog(worker.log, plugin.name),
      metrics,
      network,
      writer,
      ask,
      replica,
      kept: (key, make) =>
        worker.kept(JSON.stringify([plugin.name, servers, zones, view, key]), make),
      counters,
      offer: (port, value) => appendTo(offers, port, value),
      find: <T>(port: PluginPort<T>) => (offers.get(port) ?? []) as readonly T[],
      has: (name) => names.has(name),
      last: plugin === last?.plugin,
      path,
      file: (file) => fileAt(path(file), worker.files),
      onDropped: (run) => dropped.push(run),
      judgeDropped: (judge) => judges.push(judge),
      filter: (accepts) => filters.push(accepts),
      onStart: (run) => starts.push(run),
      onStop: (run) => stops.push(run),
      onMessage: (handler) => ownChannel().onMessage(handler),
      post: (message) => ownChannel().post(message),
    };
    next = plugin.setup(options, context, next);
    if (plan.recorded && isLink(plugin)) next = recorded(plugin.name, next);
  }
  return { chain: next, filters, dropped, judges };
}

/**
 * Returns a file's stored contents.
 * @throws Error if they are not stored
 */
export function fileAt(path: string, files: ReadonlyMap<string, Uint8Array>): Buffer {
  const bytes = files.get(path);
  if (bytes === undefined) throw new Error(`${path} was not loaded with the configuration`);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function serveEndpoint(
  endpoint: EndpointPlan,
  blocks: readonly ServedBlock[],
  built: readonly BuiltBlock[],
  worker: WorkerParts,
): ServedEndpoint {
  const { server, zones } = endpoint;
  const here = [...new Set(zones.map(({ block }) => block))];
  const panics = worker.metrics.counter(
    'coredns_panics_total',
    'A metrics that counts the number of panics.',
  );
  const stacktrace = here.some((block) => blocks[block]!.plan.stacktrace);
  const debug = here.some((block) => blocks[block]!.plan.debug);
  return {
    server,
    anyClass: here.some((block) => blocks[block]!.plan.anyClass),
    debug,
    // Several blocks may count metrics, but an unmatched query must be counted only once.
    nowhere: worker.route(server, 'dropped', ''),
    dropped: here.flatMap((block) => built[block]!.dropped).slice(0, 1),
    judge: here.flatMap((block) => built[block]!.judges)[0] ?? null,
    panicked(error, query) {
      panics.add(1);
      if (debug) worker.crash(error);
      else {
        const text = stacktrace || !(error instanceof Error) ? bugText(error) : error.message;
        worker.log.error(`Recovered from panic in server: "${server}" ${query.name} ${text}`);
      }
      return failure(RCODE.SERVFAIL, '');
    },
    table: new ZoneTable(
      zones.map(({ block, zone }) => ({
        zone: parseName(zone),
        route: worker.route(server, zone, blocks[block]!.view),
        chain: built[block]!.chain,
        filters: built[block]!.filters,
      })),
    ),
  };
}
