/** A server's control plane: startup, loading Corefiles, shutdown. */
import type { Clock } from '../../base/clock.ts';
import { bugText } from '../../base/log.ts';
import type { Maybe } from '../../base/maybe.ts';
import { Problems, problemsIn } from '../../base/problem.ts';
import type { Random } from '../../base/random.ts';
import { collectGrown } from '../../runtime/memory-policy.ts';
import {
  allowForTermination,
  endProcessWithin,
  type Termination,
} from '../../runtime/termination.ts';
import { PageSender } from '../../base/page-sender.ts';
import { Collection } from '../../metrics/collection.ts';
import { contentTypes, formatFor } from '../../metrics/formats.ts';
import { SharedRegistry } from '../../metrics/shared-registry.ts';
import type { ListenAddress } from '../../transport/listener.ts';
import { Channels } from './channels.ts';
import {
  buildControl,
  undo,
  type ControlGeneration,
  type ControlParts,
} from './control-generation.ts';
import type { KeptAcrossReloads } from '../contract/control-context.ts';
import type { EndpointPlan } from '../contract/endpoints.ts';
import { httpShare } from './descriptor-shares.ts';
import { httpConnectionLimit, HttpListeners } from './http-listeners.ts';
import { OneAtATime } from './one-at-a-time.ts';
import { PacedReloads } from './paced-reloads.ts';
import { planCorefile, type CorefileParts } from './plan-corefile.ts';
import type { Program } from '../contract/protocol.ts';
import { within } from './time-limit.ts';
import type { WorkerPort } from './worker-link.ts';
import { Workers, type ThreadTimes } from './workers.ts';

export interface ServerParts extends CorefileParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * Checks whether another process is listening on an address, which opening it would not reveal (SO_REUSEPORT).
   * @throws Problem
   */
  readonly probe?: (endpoint: ListenAddress) => Promise<void>;
  readonly spawn: (id: number, workers: number) => WorkerPort;
  /** Milliseconds after which a worker with a blocked event loop is replaced. 0 means never. */
  readonly hangMs?: number;
  /** Maximum number of HTTP connections per address (`httpConnectionLimit`). */
  readonly httpConnections?: number;
  /** True if other processes may serve HTTP on the same addresses, such as one that takes over from this one. */
  readonly sharesHttp?: boolean;
  /** Called when something ends the process (`loop`). The text has already been logged. */
  readonly onFatal: (text: string) => void;
  readonly collection?: Collection;
  /** Ensures that the process ends even if threads hang. Without it, `stop` can hang along with them. */
  readonly termination?: Termination;
}

/** Milliseconds after which a worker with a blocked event loop is considered hung. */
const HANG_MS = 2000;
/**
 * Maximum time for an orderly shutdown after lameduck, in milliseconds, even if something hangs. An immediate shutdown
 * has the same limit.
 */
const END_MS = 4300;
/** Milliseconds between that time and the moment when the kernel kills the process. */
const MARGIN_MS = 400;
/** The part of `END_MS` reserved for queries in flight. */
const GRACE_MS = 3500;
/** The part of `END_MS` reserved for a startup or reload in progress. */
const TAKING_MS = 500;

interface ServingGeneration {
  readonly program: Program;
  readonly control: ControlGeneration;
}

/**
 * The control plane. It builds the control parts of a Corefile's plugins on this thread, and their chains in the
 * workers. A reload replaces both. If the new configuration cannot serve, the previous one stays.
 */
export class Server {
  readonly #parts: ServerParts;
  readonly #channels = new Channels();
  readonly #http: HttpListeners;
  readonly #kept = new Map<string, KeptAcrossReloads>();
  readonly #collection: Collection;
  readonly #registry: SharedRegistry;
  readonly #pages: PageSender;
  readonly #control: ControlParts;
  readonly #workers: Workers;
  #serving: ServingGeneration | null = null;
  #generation = 0;
  #ending = false;
  #debugging = false;
  /** Serializes startup, reloads and the replacement of workers. */
  readonly #taking = new OneAtATime();
  readonly #reloads: PacedReloads;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.#collection = parts.collection ?? new Collection();
    this.#registry = new SharedRegistry((event) => this.#collection.add('main', event));
    this.#pages = new PageSender(parts.clock);
    this.#http = new HttpListeners(
      parts.log,
      this.#registry,
      Math.min(
        parts.httpConnections ?? httpConnectionLimit.default,
        httpShare(parts.descriptors ?? Infinity),
      ),
      parts.sharesHttp,
    );
    this.#workers = new Workers({
      spawn: parts.spawn,
      hangMs: parts.hangMs ?? HANG_MS,
      clock: parts.clock,
      log: parts.log,
      metrics: this.#registry,
      collection: this.#collection,
      channels: this.#channels,
      program: () => this.#serving?.program ?? null,
      alone: (take) => this.#taking.after(take),
    });
    this.#reloads = new PacedReloads({
      clock: parts.clock,
      log: parts.log,
      metrics: this.#registry,
      taking: this.#taking,
      workers: () => this.#workers.wanted,
      run: () => this.#reloadNow(),
    });
    this.#control = {
      clock: parts.clock,
      random: parts.random,
      log: parts.log,
      metrics: this.#registry,
      env: parts.env,
      channels: this.#channels,
      kept: this.#kept,
      sendMetrics: (request, response) => {
        const format = formatFor(request.headers.accept);
        const render = (): string | Buffer => this.#collection.scrape(format);
        this.#pages.send(request, response, format, contentTypes[format], render);
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
      answering: () => this.#workers.answering,
    };
  }

  /**
   * Starts the server. It is serving when the promise resolves.
   * @throws Problems, in which case everything is closed again
   */
  start(): Promise<void> {
    return this.#taking.run(() => this.#startNow());
  }

  async #startNow(): Promise<void> {
    // Starting a thread takes time. The first one is always needed, so it starts while the Corefile is being read.
    this.#workers.start(1);
    try {
      await this.#take();
    } catch (error) {
      await this.quit();
      throw error;
    }
    this.#showVersion(null);
    this.#workers.serving();
  }

  /** The listen addresses, used in the startup lines, for example. */
  get endpoints(): readonly EndpointPlan[] {
    return this.#serving?.program.endpoints ?? [];
  }

  /** Returns a listen address's actual port (`dns://:0`), or 0. */
  port(server: string): number {
    return this.#workers.port(server);
  }

  httpPort(address: string): number | null {
    return this.#http.port(address);
  }

  /** Returns the workers' threads, with the time that their event loops were busy and idle, in milliseconds. */
  threads(): readonly ThreadTimes[] {
    return this.#workers.threads();
  }

  /** True if a block being served has `debug`, in which case debug lines are logged. */
  get debugging(): boolean {
    return this.#debugging;
  }

  get fingerprint(): string {
    return this.#serving?.program.corefile.fingerprint ?? '';
  }

  metrics(): string {
    return this.#collection.print('text');
  }

  /**
   * Loads the current Corefile. Returns false if it was rejected, in which case the previous one is still being served.
   * If a Corefile is already being loaded, or reloads are too frequent, it waits. It then loads the file again, because
   * it may have changed after it was read.
   */
  reload(): Promise<boolean> {
    return this.#reloads.request();
  }

  async #reloadNow(): Promise<boolean> {
    const { log } = this.#parts;
    if (this.#ending) return false;
    log.info('Reloading');
    const failed = this.#registry.counter(
      'coredns_reload_failed_total',
      'Counter of the number of failed reload attempts.',
    );
    const before = this.fingerprint;
    try {
      await this.#take();
    } catch (error) {
      failed.add(1);
      const problems = problemsIn(error);
      if (problems === null) log.error(`Restart failed: ${bugText(error)}`);
      else for (const problem of problems) log.error(`Restart failed: ${problem.print()}`);
      if (error instanceof Problems)
        for (const warning of error.warnings) log.warning(warning.print());
      log.error('The previous configuration stays in use.');
      return false;
    } finally {
      collectGrown();
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

  /** Builds the Corefile's configuration alongside the current one, and then replaces that one. */
  async #take(): Promise<void> {
    const planned = await planCorefile(this.#parts, this.endpoints.length === 0);
    const { corefile, texts, configuration, endpoints, workers } = planned;
    if (this.#serving === null) this.#workers.start(workers);
    const generation = ++this.#generation;
    const { directory } = this.#parts;
    const debugging = configuration.blocks.some(({ plan }) => plan.debug);
    const debugged = this.#debugging;
    // The log also shows what the new configuration reads before it starts to serve.
    this.#debugging ||= debugging;
    let program: Program;
    let control: ControlGeneration | null = null;
    let opened: readonly string[] = [];
    let prepared: Promise<void> = Promise.resolve();
    try {
      control = await buildControl(
        {
          number: generation,
          configuration,
          endpoints,
          directory,
          fingerprint: corefile.fingerprint,
          texts,
        },
        this.#control,
      );
      program = { generation, corefile, directory, endpoints, files: control.files };
      // Workers build their chains while the control parts load their data.
      prepared = this.#workers.orderAll({ kind: 'prepare', program });
      prepared.catch(() => undefined);
      opened = await this.#http.open(control.http);
      await Promise.all([prepared, ...control.starts.map(async (start) => start())]);
      for (const endpoint of this.#newIn(endpoints)) await this.#parts.probe?.(endpoint);
      await this.#workers.orderAll({ kind: 'open', generation });
    } catch (error) {
      // Wait until the workers have built it, because before that there would be nothing to discard.
      await prepared.catch(() => undefined);
      await this.#abandon(generation, control, opened);
      this.#debugging = debugged;
      throw error;
    }
    const before = this.#serving;
    this.#serving = { program, control };
    this.#debugging = debugging;
    await this.#http.commit(control.http);
    const fromMs = this.#parts.clock.wall();
    await this.#workers.orderAll({ kind: 'commit', generation });
    const switched = { fromMs, toMs: this.#parts.clock.wall() };
    this.#allowForEnd();
    if (before !== null) await undo(before.control, this.#parts);
    if (before !== null) this.#dropChannels(before.program.generation);
    await this.#release(control);
    for (const run of control.servings) run(switched);
  }

  /**
   * Reverts a configuration that cannot serve.
   * @param control null if its control parts could not be built, and have been stopped
   * @param opened HTTP addresses that were opened for it
   */
  async #abandon(
    generation: number,
    control: ControlGeneration | null,
    opened: readonly string[],
  ): Promise<void> {
    await this.#workers.tellAll({ kind: 'discard', generation });
    await this.#http.close(opened);
    if (control !== null) await undo(control, this.#parts);
    await this.#release(this.#serving?.control ?? null);
    this.#dropChannels(generation);
  }

  #dropChannels(generation: number): void {
    this.#channels.drop((id) => id.startsWith(`${generation}/`));
  }

  /** Returns the addresses that are not open yet. */
  #newIn(endpoints: readonly EndpointPlan[]): readonly EndpointPlan[] {
    const open = new Set(this.endpoints.map(({ server }) => server));
    return endpoints.filter(({ server, port }) => port !== 0 && !open.has(server));
  }

  /** Closes objects that survived reloads and are no longer used. */
  async #release(control: ControlGeneration | null): Promise<void> {
    const { clock, log } = this.#parts;
    for (const [key, kept] of [...this.#kept]) {
      if (control?.keys.has(key)) continue;
      this.#kept.delete(key);
      const closed = await within(
        clock,
        END_MS,
        attempt(() => kept.close()),
      );
      if (!closed) log.error(`${key}, which outlives reloads, does not stop`);
      this.#channels.drop((id) => id === key);
    }
  }

  /**
   * Ends immediately, even while `stop` is running. There is no lameduck, and no wait for queries in flight.
   * @returns see `stop`
   */
  quit(): Promise<boolean> {
    if (this.#parts.termination !== undefined) endProcessWithin(END_MS + MARGIN_MS);
    return this.#end(0, END_MS);
  }

  /**
   * Shuts down in order: first lameduck, then the listeners, then everything else, at most `END_MS` after lameduck.
   * @param staying true if the process continues without the server, in which case its end is not enforced
   * @returns true if everything ended. If false, something hangs and the process must be killed
   */
  async stop(staying = false): Promise<boolean> {
    if (this.#ending) return true;
    this.#ending = true;
    const { clock, termination } = this.#parts;
    if (termination !== undefined && !staying) endProcessWithin(this.#endsWithinMs);
    const { running } = this.#taking;
    if (running !== null) await within(clock, TAKING_MS, running);
    let inTime = true;
    for (const { run, lastsMs } of this.#serving?.control.shutdowns ?? []) {
      const done = await within(clock, lastsMs + TAKING_MS, attempt(run));
      inTime &&= done;
    }
    return (await this.#end(GRACE_MS, END_MS - TAKING_MS)) && inTime;
  }

  /** Maximum milliseconds that an orderly shutdown may take. */
  get #endsWithinMs(): number {
    const shutdowns = this.#serving?.control.shutdowns ?? [];
    return shutdowns.reduce((sum, { lastsMs }) => sum + lastsMs, END_MS + MARGIN_MS);
  }

  #allowForEnd(): void {
    const { termination } = this.#parts;
    if (termination !== undefined) allowForTermination(termination, this.#endsWithinMs);
  }

  async #end(graceMs: number, limitMs: number): Promise<boolean> {
    this.#ending = true;
    const { clock, log } = this.#parts;
    const until = clock.now() + limitMs;
    const workersEnded = await this.#workers.end(graceMs);
    let undone = true;
    const rest = async (): Promise<void> => {
      if (this.#serving !== null) undone = await undo(this.#serving.control, this.#parts);
      this.#serving = null;
      await this.#release(null);
      await this.#http.close();
    };
    const ended = await within(clock, Math.max(500, until - clock.now()), rest());
    if (!ended) log.error('a plugin does not stop, so the process ends without waiting for it');
    return workersEnded && ended && undone;
  }
}

async function attempt(run: () => Maybe<void>): Promise<void> {
  await run();
}
