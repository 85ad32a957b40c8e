/** The control parts of one configuration. */
import { resolve } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { bugText, pluginLog, type Log } from '../../base/log.ts';
import type { Maybe } from '../../base/maybe.ts';
import { Problem } from '../../base/problem.ts';
import type { Random } from '../../base/random.ts';
import type { Registry } from '../../metrics/registry.ts';
import type { Channels } from './channels.ts';
import { ReplicatedSet } from './replicated-set.ts';
import { placed, type Configuration } from '../contract/configuration.ts';
import type {
  ControlContext,
  HttpHandler,
  Kept,
  RunningConfiguration,
} from '../contract/control-context.ts';
import { dataSetChannel } from '../contract/data-set.ts';
import type { EndpointPlan } from '../contract/endpoints.ts';
import { httpAddress } from './http-listeners.ts';

/** What the main thread brings to every configuration. */
export interface ControlParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly channels: Channels;
  /** Things that outlive reloads, by key. */
  readonly kept: Map<string, Kept>;
  readonly scrape: ControlContext['scrape'];
  readonly reread: RunningConfiguration['reread'];
  readonly reload: () => Promise<boolean>;
  readonly fatal: (text: string) => void;
  readonly answering: () => boolean;
}

type Hook = () => Maybe<void>;

/** What a plugin does while the process ends. */
export interface Shutdown {
  readonly run: Hook;
  /** How long it takes by its nature, milliseconds: who takes much longer hangs. */
  readonly lastsMs: number;
}

/** One configuration's control parts. */
export interface ControlGeneration {
  readonly number: number;
  readonly starts: readonly Hook[];
  readonly stops: readonly Hook[];
  /** In chain order: the order in which a final shutdown runs them. */
  readonly shutdowns: readonly Shutdown[];
  readonly http: ReadonlyMap<string, ReadonlyMap<string, HttpHandler>>;
  /** Keys of kept things that this configuration asked for. */
  readonly keys: ReadonlySet<string>;
}

/** Runs the control part of every plugin. @throws Problem of the first one that cannot work */
export async function buildControl(
  number: number,
  configuration: Configuration,
  endpoints: readonly EndpointPlan[],
  folder: string,
  fingerprint: string,
  control: ControlParts,
): Promise<ControlGeneration> {
  const starts: Hook[] = [];
  const stops: Hook[] = [];
  const shutdowns: (Shutdown & { readonly order: number })[] = [];
  const http = new Map<string, Map<string, HttpHandler>>();
  const keys = new Set<string>();
  const readiness: { block: number; name: string; ready: () => boolean }[] = [];
  /** Blocks whose plugins' readiness somebody observes. */
  const observed = new Set<number>();
  const generation = { number, starts, stops, http, keys };
  for (const [index, { zones, instances, plan, view, block }] of configuration.blocks.entries()) {
    const servers = endpoints
      .filter((endpoint) => endpoint.zones.some((zone) => zone.block === index))
      .map(({ server }) => server);
    const names = new Set(instances.map(({ plugin }) => plugin.name));
    const answering = instances.filter(({ plugin }) => plugin.setup !== undefined);
    const links = [...new Set(answering.map(({ plugin }) => plugin.name))];
    for (const [order, { plugin, options, id }] of instances.entries()) {
      if (plugin.control === undefined) continue;
      const { clock, random, metrics, env, scrape, channels, fatal, answering } = control;
      const context: ControlContext = {
        zones,
        servers,
        view,
        clock,
        random,
        metrics,
        env,
        scrape,
        fatal,
        answering,
        log: pluginLog(control.log, plugin.name),
        path: (file) => resolve(folder, plan.root, file),
        has: (name) => names.has(name),
        links,
        ...channels.control(`${number}/${id}`),
        onStart: (run) => starts.push(run),
        onStop: (run) => stops.push(run),
        onShutdown: (run, lastsMs = 0) => shutdowns.push({ order, run, lastsMs }),
        keep: (key, make) => keep(control.kept, keys, key, make),
        replicated: (key, make) =>
          keep(control.kept, keys, dataSetChannel(key), () =>
            make((set) => {
              const links = channels.replicas(dataSetChannel(key));
              const name = key.slice(0, key.indexOf('/'));
              return new ReplicatedSet({ name, links, clock, metrics }, set);
            }),
          ),
        http: (address, path, handler) => {
          const at = httpAddress(address);
          const paths = http.get(at) ?? new Map<string, HttpHandler>();
          http.set(at, paths);
          paths.set(path, handler);
        },
        readiness: (ready) => readiness.push({ block: index, name: plugin.name, ready }),
        observeReadiness: () => {
          observed.add(index);
          return () => {
            const found = new Map<string, boolean>();
            for (const { block: at, name, ready } of readiness) {
              if (observed.has(at)) found.set(name, ready() && found.get(name) !== false);
            }
            return found;
          };
        },
        configuration: { fingerprint, reread: control.reread, reload: control.reload },
      };
      try {
        await plugin.control(options, context);
      } catch (error) {
        await undo(generation, control.log);
        if (!(error instanceof Problem)) throw error;
        const directive = block.directives.find(({ name }) => name === plugin.name);
        throw placed(error, plugin.name, directive);
      }
    }
  }
  shutdowns.sort((a, b) => a.order - b.order);
  return { ...generation, shutdowns };
}

function keep<T extends Kept>(
  kept: Map<string, Kept>,
  keys: Set<string>,
  key: string,
  make: () => T,
): T {
  keys.add(key);
  const known = kept.get(key);
  if (known !== undefined) return known as T;
  const made = make();
  kept.set(key, made);
  return made;
}

/** Ends a configuration's control parts. One that throws keeps none of the others from ending: it is logged. */
export async function undo({ stops }: Pick<ControlGeneration, 'stops'>, log: Log): Promise<void> {
  for (const stop of stops) {
    try {
      await stop();
    } catch (error) {
      log.error(`a control part ends with a bug: ${bugText(error)}`);
    }
  }
}
