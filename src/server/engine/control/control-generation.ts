/** The control parts of one configuration. */
import { resolve } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { bugText, pluginLog, type Log } from '../../base/log.ts';
import type { Maybe } from '../../base/maybe.ts';
import { Problem, Problems, problemsIn } from '../../base/problem.ts';
import { FILE_MAX, readFileBytes } from '../../base/read-file.ts';
import type { Random } from '../../base/random.ts';
import type { Registry } from '../../metrics/registry.ts';
import { within } from './time-limit.ts';
import type { Channels } from './channels.ts';
import { ReplicatedSet } from './replicated-set.ts';
import {
  placed,
  type BoundBlock,
  type Configuration,
  type Instance,
} from '../contract/configuration.ts';
import type {
  AdminCommand,
  ControlContext,
  HttpHandler,
  HttpTls,
  KeptAcrossReloads,
  RunningConfiguration,
  SwitchTime,
} from '../contract/control-context.ts';
import { dataSetChannel, type DataSet, type DataSetParts } from '../contract/data-set.ts';
import type { EndpointPlan } from '../contract/endpoints.ts';
import { isLink } from '../contract/plugin.ts';
import { httpAddress, mixedTls, type HttpPlan } from './http-listeners.ts';

/** The main thread's part in every configuration. */
export interface ControlParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly channels: Channels;
  /** Objects that survive reloads, by key. */
  readonly kept: Map<string, KeptAcrossReloads>;
  readonly sendMetrics: ControlContext['sendMetrics'];
  readonly reread: RunningConfiguration['reread'];
  readonly reload: () => Promise<boolean>;
  readonly fatal: (text: string) => void;
  readonly answering: () => boolean;
}

type Hook = () => Maybe<void>;

export interface Shutdown {
  readonly run: Hook;
  /** Expected duration in milliseconds. A function that takes much longer is considered to hang. */
  readonly lastsMs: number;
}

export interface ControlGeneration {
  readonly number: number;
  readonly starts: readonly Hook[];
  /** Functions to run once the configuration has replaced the previous one. */
  readonly servings: readonly ((switched: SwitchTime) => void)[];
  readonly stops: readonly Hook[];
  /** In chain order, which is the order in which they run at the final shutdown. */
  readonly shutdowns: readonly Shutdown[];
  readonly http: HttpPlan;
  /** Keys of the surviving objects that this configuration uses. */
  readonly keys: ReadonlySet<string>;
  /** See `Program.files`. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

export interface ControlDraft {
  /** The configuration's number, which increases with each reload. */
  readonly number: number;
  readonly configuration: Configuration;
  readonly endpoints: readonly EndpointPlan[];
  /** Base directory for relative paths. */
  readonly directory: string;
  readonly fingerprint: string;
  /** The texts of the Corefile and its imports, by file name. */
  readonly texts: ReadonlyMap<string, string>;
}

/**
 * Runs every plugin's control part.
 * @throws Problems with everything that cannot work
 */
export async function buildControl(
  draft: ControlDraft,
  control: ControlParts,
): Promise<ControlGeneration> {
  const building = new Building(draft, control);
  const problems: Problem[] = [];
  for (const [index, bound] of draft.configuration.blocks.entries()) {
    const place = placeOf(index, bound, draft.endpoints);
    for (const [order, instance] of bound.instances.entries()) {
      const { plugin, options } = instance;
      if (plugin.control === undefined) continue;
      try {
        await plugin.control(options, building.contextOf(place, instance, order));
      } catch (error) {
        const found = problemsIn(error);
        if (found === null && problems.length === 0) {
          await undo(building, control);
          throw error;
        }
        const directive = bound.block.directives.find(({ name }) => name === plugin.name);
        for (const problem of found ?? []) problems.push(placed(problem, plugin.name, directive));
      }
    }
  }
  if (problems.length > 0) {
    await undo(building, control);
    throw problems.length === 1 ? problems[0]! : new Problems(problems);
  }
  return building.finished();
}

/** One server block as seen by its plugins. */
interface BlockPlace {
  readonly index: number;
  readonly root: string;
  readonly zones: readonly string[];
  readonly servers: readonly string[];
  readonly view: string;
  readonly links: readonly string[];
  readonly has: (plugin: string) => boolean;
}

function placeOf(
  index: number,
  { zones, instances, plan, view }: BoundBlock,
  endpoints: readonly EndpointPlan[],
): BlockPlace {
  const names = new Set(instances.map(({ plugin }) => plugin.name));
  const answering = instances.filter(({ plugin }) => isLink(plugin));
  return {
    index,
    zones,
    view,
    root: plan.root,
    servers: endpoints
      .filter((endpoint) => endpoint.zones.some((zone) => zone.block === index))
      .map(({ server }) => server),
    has: (name) => names.has(name),
    links: [...new Set(answering.map(({ plugin }) => plugin.name))],
  };
}

interface Readiness {
  readonly block: number;
  readonly plugin: string;
  readonly ready: () => boolean;
}

/** Collects what control parts register. */
class Building {
  readonly stops: Hook[] = [];
  readonly #draft: ControlDraft;
  readonly #control: ControlParts;
  readonly #starts: Hook[] = [];
  readonly #servings: ((switched: SwitchTime) => void)[] = [];
  readonly #shutdowns: (Shutdown & { readonly order: number })[] = [];
  readonly #http = new Map<string, GrowingAddress>();
  readonly #keys = new Set<string>();
  readonly #readiness: Readiness[] = [];
  readonly #files = new Map<string, Uint8Array>();
  readonly #commands = new Map<string, AdminCommand[]>();
  /** Blocks whose plugins' readiness is observed. */
  readonly #observed = new Set<number>();

  constructor(draft: ControlDraft, control: ControlParts) {
    this.#draft = draft;
    this.#control = control;
  }

  finished(): ControlGeneration {
    return {
      number: this.#draft.number,
      starts: this.#starts,
      servings: this.#servings,
      stops: this.stops,
      shutdowns: this.#shutdowns.toSorted((a, b) => a.order - b.order),
      http: this.#http,
      keys: this.#keys,
      files: this.#files,
    };
  }

  /** @param order the instance's index in its chain */
  contextOf(
    { index, root, ...place }: BlockPlace,
    { plugin: { name }, id }: Instance,
    order: number,
  ): ControlContext {
    const { clock, random, metrics, env, sendMetrics, fatal, answering } = this.#control;
    const { log, channels, reread, reload } = this.#control;
    const { number, directory, fingerprint, texts } = this.#draft;
    const path = (file: string): string => resolve(directory, root, file);
    return {
      ...place,
      clock,
      random,
      metrics,
      env,
      sendMetrics,
      fatal,
      answering,
      log: pluginLog(log, name),
      path,
      file: (file) => this.#read(path(file)),
      configuration: { fingerprint, texts, reread, reload },
      ...channels.control(`${number}/${id}`),
      onStart: (run) => this.#starts.push(run),
      onServing: (run) => this.#servings.push(run),
      onStop: (run) => this.stops.push(run),
      onShutdown: (run, lastsMs = 0) => this.#shutdowns.push({ order, run, lastsMs }),
      keep: (key, make) => this.#keep(key, make),
      replicated: (key, make) =>
        this.#keep(dataSetChannel(key), () => make((set) => this.#openSet(key, set))),
      http: (address, path, handler, tls) => this.#serve(address, path, handler, tls ?? null),
      readiness: (ready) => this.#readiness.push({ block: index, plugin: name, ready }),
      observeReadiness: () => {
        this.#observed.add(index);
        return () => this.#readinessNow();
      },
      offerCommand: (command, run) => {
        const offered = this.#commands.get(command) ?? [];
        this.#commands.set(command, [...offered, run]);
      },
      commands: (command) => this.#commands.get(command) ?? [],
    };
  }

  #read(path: string): Buffer {
    const bytes = readFileBytes(path, FILE_MAX.small);
    this.#files.set(path, bytes);
    return bytes;
  }

  #keep<T extends KeptAcrossReloads>(key: string, make: () => T): T {
    const { kept } = this.#control;
    this.#keys.add(key);
    const known = kept.get(key);
    if (known !== undefined) return known as T;
    const made = make();
    kept.set(key, made);
    return made;
  }

  #openSet<C, R>(key: string, set: DataSetParts<C, R>): DataSet<C> {
    const { channels, clock, metrics } = this.#control;
    const links = channels.replicas(dataSetChannel(key));
    const name = key.slice(0, key.indexOf('/'));
    return new ReplicatedSet({ name, links, clock, metrics }, set);
  }

  #serve(address: string, path: string, handler: HttpHandler, tls: HttpTls | null): void {
    const at = httpAddress(address);
    const known = this.#http.get(at);
    const found = known ?? { paths: new Map<string, HttpHandler>(), tls };
    if (found.tls?.key !== tls?.key) throw mixedTls(address);
    this.#http.set(at, found);
    found.paths.set(path, handler);
  }

  /** For each plugin, whether all its instances in observed blocks are ready. */
  #readinessNow(): ReadonlyMap<string, boolean> {
    const found = new Map<string, boolean>();
    for (const { block, plugin, ready } of this.#readiness) {
      if (this.#observed.has(block)) found.set(plugin, ready() && found.get(plugin) !== false);
    }
    return found;
  }
}

interface GrowingAddress {
  readonly paths: Map<string, HttpHandler>;
  readonly tls: HttpTls | null;
}

/** Maximum number of milliseconds that a control part may take to stop. */
const STOP_MS = 4000;

/**
 * Stops a configuration's control parts. If one throws or hangs, this is logged and the others are still stopped.
 * @returns true if all have stopped
 */
export async function undo(
  { stops }: Pick<ControlGeneration, 'stops'>,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<boolean> {
  const ended = stops.map(async (stop) => {
    try {
      await stop();
    } catch (error) {
      log.error(`a plugin failed during shutdown because of a bug: ${bugText(error)}`);
    }
  });
  if (await within(clock, STOP_MS, Promise.all(ended))) return true;
  log.error('a plugin from the old configuration does not stop');
  return false;
}
