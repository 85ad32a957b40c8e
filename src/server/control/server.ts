import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { Problems, problemsIn } from '../../base/problem.ts';
import type { Random } from '../../base/random.ts';
import type { ParseOutput } from '../../corefile/parse.ts';
import type { Syntax } from '../../corefile/syntax.ts';
import { Collection } from '../../metrics/collection.ts';
import { contentTypes, formatFor } from '../../metrics/formats.ts';
import { SharedRegistry } from '../../metrics/registry.ts';
import { Channels } from './channels.ts';
import { bindConfiguration, namesIn } from '../contract/configuration.ts';
import {
  buildControl,
  undo,
  type ControlGeneration,
  type ControlParts,
} from './control-generation.ts';
import type { Kept } from '../contract/control-context.ts';
import { planEndpoints, type EndpointPlan } from '../contract/endpoints.ts';
import { HttpListeners } from './http-listeners.ts';
import type { Plugin } from '../contract/plugin.ts';
import type { Program } from '../contract/protocol.ts';
import { WorkerLink, type WorkerEvents, type WorkerPort } from './worker-link.ts';

export interface ServerParts {
  /** The plugins of these directives, in chain order; all there are if no names are given. */
  readonly plugins: (names?: ReadonlySet<string>) => Promise<readonly Plugin[]>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * Reads and parses the Corefile as it is now. Syntaxes make for better hints.
   * @throws Problem if it cannot be read
   */
  readonly load: (syntaxes: readonly Syntax[]) => ParseOutput;
  /** Base of relative paths: the Corefile's folder. */
  readonly folder: string;
  /**
   * Finds out whether somebody else holds an address, which opening it would not show (SO_REUSEPORT).
   * @throws Problem
   */
  readonly probe?: (endpoint: EndpointPlan) => Promise<void>;
  /** How many workers answer. */
  readonly workers: number;
  readonly spawn: (id: number) => WorkerPort;
  /** Something that ends the process (`loop`): the text is logged already. */
  readonly onFatal: (text: string) => void;
  readonly collection?: Collection;
}

/** In-flight queries get this long when a server ends. */
const GRACE_MS = 5000;
/** A worker that dies again and again is not started more often than this; the first time another takes its place at once. */
const RESPAWN_MS = 1000;
/** Two deaths within this time are one trouble, which a moment's pause may spare the machine. */
const AGAIN_MS = 10_000;
/** A worker that has not closed its listeners this long after its grace hangs; nobody waits for it. */
const HANG_MS = 2000;

interface Serving {
  readonly program: Program;
  readonly control: ControlGeneration;
}

/**
 * The control plane: turns a Corefile into control parts on this thread and chains in workers, and replaces them on reload
 * such that a configuration that cannot serve leaves the one before untouched.
 */
export class Server {
  readonly #parts: ServerParts;
  readonly #channels = new Channels();
  readonly #http: HttpListeners;
  readonly #kept = new Map<string, Kept>();
  readonly #collection: Collection;
  readonly #registry: SharedRegistry;
  readonly #control: ControlParts;
  #links: WorkerLink[] = [];
  #serving: Serving | null = null;
  /** By worker: when one died last. */
  readonly #lostAt = new Map<number, number>();
  #generation = 0;
  #starting = true;
  #ending = false;
  #debugging = false;
  /** The start or the reload under way. */
  #taking: Promise<unknown> | null = null;
  /** The one reload that follows it, when asked for meanwhile. */
  #next: Promise<boolean> | null = null;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.#http = new HttpListeners(parts.log);
    this.#collection = parts.collection ?? new Collection();
    this.#registry = new SharedRegistry((event) => this.#collection.add('main', event));
    this.#control = {
      clock: parts.clock,
      random: parts.random,
      log: parts.log,
      metrics: this.#registry,
      env: parts.env,
      channels: this.#channels,
      kept: this.#kept,
      scrape: (accept) => {
        const format = formatFor(accept);
        return { type: contentTypes[format], body: this.#collection.print(format) };
      },
      reread: () => {
        try {
          const { corefile, problems } = parts.load([]);
          return problems.length > 0
            ? { problem: problems[0]! }
            : { fingerprint: corefile.fingerprint };
        } catch (error) {
          return { problem: error as Error };
        }
      },
      reload: () => this.reload(),
      fatal: (text) => parts.onFatal(text),
    };
  }

  /** Serves when it resolves. @throws Problems; nothing is left open then */
  start(): Promise<void> {
    return this.#alone(() => this.#startNow());
  }

  async #startNow(): Promise<void> {
    for (let id = 0; id < this.#parts.workers; id++) this.#links.push(this.#spawn(id));
    try {
      await this.#take();
    } catch (error) {
      await this.#end(0);
      throw error;
    }
    this.#starting = false;
    this.#showVersion(null);
    // Who died between serving and here was nobody's to replace.
    for (const link of this.#links) if (link.gone) this.#replace(link, 0);
  }

  /** What listens where, e.g. for the start-up lines. */
  get endpoints(): readonly EndpointPlan[] {
    return this.#serving?.program.endpoints ?? [];
  }

  /** The port in use at a listen address (`dns://:0`), or 0. */
  port(server: string): number {
    return this.#links[0]?.ports[server] ?? 0;
  }

  httpPort(address: string): number | null {
    return this.#http.port(address);
  }

  /** Whether a block with `debug` is served: debug lines are logged then. */
  get debugging(): boolean {
    return this.#debugging;
  }

  get fingerprint(): string {
    return this.#serving?.program.corefile.fingerprint ?? '';
  }

  scrape(accept?: string): { readonly type: string; readonly body: string } {
    return this.#control.scrape(accept);
  }

  /**
   * Takes the Corefile as it is now. False: it was not taken, the one before still serves. Asked for while a Corefile is
   * being taken, it waits and takes it once more: the file may have changed after it was read.
   */
  reload(): Promise<boolean> {
    if (this.#taking === null) return this.#alone(() => this.#reloadNow());
    const again = (): Promise<boolean> => {
      this.#next = null;
      return this.reload();
    };
    this.#next ??= this.#taking.then(again, again);
    return this.#next;
  }

  #alone<T>(take: () => Promise<T>): Promise<T> {
    const taking = take().finally(() => {
      this.#taking = null;
    });
    this.#taking = taking;
    return taking;
  }

  async #reloadNow(): Promise<boolean> {
    const { log } = this.#parts;
    if (this.#ending) return false;
    log.info('Reloading');
    const failed = this.#registry
      .counter(
        'coredns_reload_failed_total',
        'Counter of the number of failed reload attempts.',
        [],
      )
      .with();
    const before = this.fingerprint;
    try {
      await this.#take();
    } catch (error) {
      failed.add(1);
      const problems = problemsIn(error);
      if (problems === null) log.error(`Restart failed: ${(error as Error).stack}`);
      else for (const problem of problems) log.error(`Restart failed: ${problem.print()}`);
      if (error instanceof Problems)
        for (const warning of error.warnings) log.warning(warning.print());
      log.error('The configuration before is still in use.');
      return false;
    }
    this.#showVersion(before);
    log.info('Reloading complete');
    return true;
  }

  #showVersion(before: string | null): void {
    const version = this.#registry.gauge(
      'coredns_reload_version_info',
      'A metric with a constant value of 1 labeled by hash, and value which type of hash generated.',
      ['hash', 'value'],
      'last',
    );
    if (before !== null) version.remove('sha512', before);
    version.with('sha512', this.fingerprint).set(1);
  }

  /** Builds the Corefile's configuration beside the present one, then puts it in its place. */
  async #take(): Promise<void> {
    const { plugins, parsed } = await this.#read();
    const { corefile, problems, warnings } = parsed;
    const configuration = bindConfiguration(corefile, plugins);
    const { endpoints, problems: clashes } = planEndpoints(
      configuration.blocks,
      this.#parts.folder,
    );
    const all = [...problems, ...configuration.problems, ...clashes];
    const remarks = [...warnings, ...configuration.warnings];
    if (all.length > 0) throw new Problems(all, remarks);
    for (const warning of remarks) this.#parts.log.warning(warning.print());
    const generation = ++this.#generation;
    const { folder } = this.#parts;
    const program: Program = { generation, corefile, folder, endpoints };
    const control = await buildControl(
      generation,
      configuration,
      endpoints,
      folder,
      corefile.fingerprint,
      this.#control,
    );
    let opened: readonly string[] = [];
    try {
      await this.#orderAll({ kind: 'prepare', program });
      opened = await this.#http.open(control.http);
      await Promise.all(control.starts.map(async (start) => start()));
      for (const endpoint of this.#newIn(endpoints)) await this.#parts.probe?.(endpoint);
      await this.#orderAll({ kind: 'open', generation });
    } catch (error) {
      await Promise.allSettled(
        this.#links.map((link) => link.order({ kind: 'discard', generation })),
      );
      await this.#http.close(opened);
      await undo(control);
      await this.#release(this.#serving?.control ?? null);
      throw error;
    }
    const before = this.#serving;
    this.#serving = { program, control };
    this.#debugging = configuration.blocks.some(({ plan }) => plan.debug);
    await this.#http.commit(control.http);
    await this.#orderAll({ kind: 'commit', generation });
    if (before !== null) await undo(before.control);
    this.#channels.drop((id) => id.startsWith(`${before?.program.generation}/`));
    await this.#release(control);
  }

  /** Addresses that are not open here already. */
  #newIn(endpoints: readonly EndpointPlan[]): readonly EndpointPlan[] {
    const open = new Set(this.endpoints.map(({ server }) => server));
    return endpoints.filter(({ server, port }) => port !== 0 && !open.has(server));
  }

  /** The Corefile and the plugins that it names; all plugins if something is wrong, since the hints know more then. */
  async #read(): Promise<{ plugins: readonly Plugin[]; parsed: ParseOutput }> {
    const { load, plugins: loadPlugins } = this.#parts;
    const parsed = load([]);
    if (parsed.problems.length === 0) {
      return { parsed, plugins: await loadPlugins(namesIn(parsed.corefile)) };
    }
    const plugins = await loadPlugins();
    return { plugins, parsed: load(plugins.map(({ syntax }) => syntax)) };
  }

  /** Closes what outlived reloads but is asked for no longer. */
  async #release(control: ControlGeneration | null): Promise<void> {
    for (const [key, kept] of [...this.#kept]) {
      if (control?.keys.has(key)) continue;
      this.#kept.delete(key);
      await kept.close();
      this.#channels.drop((id) => id === key);
    }
  }

  /** A worker that dies meanwhile does not count, unless this is the start: who takes its place is told what serves then. */
  async #orderAll(order: Parameters<WorkerLink['order']>[0]): Promise<void> {
    await Promise.all(
      this.#links.map((link) =>
        link.order(order).catch((error: unknown) => {
          if (!link.gone || this.#starting) throw error;
        }),
      ),
    );
  }

  /** At once, also in the middle of `stop`: no lameduck, nothing in flight is waited for. */
  async quit(): Promise<void> {
    await this.#end(0);
  }

  /** Lameduck, then the listeners, then everything else. */
  async stop(): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    await this.#taking;
    for (const shutdown of this.#serving?.control.shutdowns ?? []) await shutdown();
    await this.#end(GRACE_MS);
  }

  async #end(graceMs: number): Promise<void> {
    this.#ending = true;
    const closed = Promise.allSettled(
      this.#links.map((link) => link.order({ kind: 'close', graceMs })),
    );
    await this.#within(graceMs + HANG_MS, closed);
    if (this.#serving !== null) await undo(this.#serving.control);
    this.#serving = null;
    await this.#release(null);
    await this.#http.close();
    await Promise.all(this.#links.map((link) => link.end()));
    this.#links = [];
  }

  #spawn(id: number): WorkerLink {
    const events: WorkerEvents = {
      join: (worker, channel) => this.#channels.join(worker, channel),
      leave: (worker, channel) => this.#channels.leave(worker, channel),
      post: (worker, channel, message) => this.#channels.post(worker, channel, message),
      register: (worker, registration) => this.#collection.add(`worker-${worker.id}`, registration),
      exit: (worker, error) => this.#lost(worker, error),
    };
    return new WorkerLink(id, this.#parts.spawn(id), events);
  }

  /** A worker died: another takes its place and its share of the listeners. */
  #lost(worker: WorkerLink, error: Error): void {
    this.#channels.forget(worker);
    this.#collection.retire(`worker-${worker.id}`);
    // A worker that does not even start is the start's failure, not something to try again.
    if (this.#ending || this.#starting) return;
    this.#parts.log.error(
      `worker ${worker.id} ended unexpectedly and is started again: ${error.message}`,
    );
    const now = this.#parts.clock.now();
    const again = now - (this.#lostAt.get(worker.id) ?? -Infinity) < AGAIN_MS;
    this.#lostAt.set(worker.id, now);
    this.#replace(worker, again ? RESPAWN_MS : 0);
  }

  #replace(worker: WorkerLink, waitMs: number): void {
    this.#parts.clock.after(waitMs, () => void this.#respawn(worker));
  }

  async #respawn(worker: WorkerLink): Promise<void> {
    // A Corefile that is being taken is awaited: the newcomer begins with what serves after it.
    while (this.#taking !== null) await this.#taking.catch(() => undefined);
    if (this.#ending) return;
    await this.#alone(async () => {
      const link = this.#spawn(worker.id);
      this.#links = this.#links.map((other) => (other === worker ? link : other));
      try {
        await this.#revive(link);
        this.#parts.log.info(`worker ${link.id} serves again`);
      } catch (error) {
        // Dead once more: then it is on its way to be replaced already.
        if (link.gone) return;
        this.#parts.log.error(
          `worker ${link.id} could not be started again, the next try follows: ${problemsIn(error)?.[0]?.print() ?? String(error)}`,
        );
        await link.end();
        this.#channels.forget(link);
        this.#collection.retire(`worker-${link.id}`);
        this.#replace(link, RESPAWN_MS);
      }
    });
  }

  async #revive(link: WorkerLink): Promise<void> {
    if (this.#serving === null) return;
    const { program } = this.#serving;
    const { generation } = program;
    await link.order({ kind: 'prepare', program });
    await link.order({ kind: 'open', generation });
    await link.order({ kind: 'commit', generation });
  }

  /** Waits for what may never come. */
  async #within(limitMs: number, awaited: Promise<unknown>): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#parts.clock.after(limitMs, resolve);
      void awaited.finally(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}
