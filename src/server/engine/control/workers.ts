/** All of a server's workers: gives them orders, and replaces those that are lost. */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { Problem, problemsIn } from '../../base/problem.ts';
import type { Collection } from '../../metrics/collection.ts';
import type { Counter, Family, Gauge, Registry } from '../../metrics/registry.ts';
import type { Program } from '../contract/protocol.ts';
import { isBuilding } from '../contract/pulse.ts';
import type { Channels } from './channels.ts';
import { within } from './time-limit.ts';
import { Watchdog } from './watchdog.ts';
import { WorkerLink, type Order, type WorkerEvents, type WorkerPort } from './worker-link.ts';

export interface WorkersParts {
  /** Starts a worker; `workers` is the planned total. */
  readonly spawn: (id: number, workers: number) => WorkerPort;
  /** See `WatchdogParts`. */
  readonly hangMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Registry;
  readonly collection: Collection;
  readonly channels: Channels;
  /** The program being served, with which a replacement worker starts. Null if there is none yet. */
  readonly program: () => Program | null;
  /** Runs `take` once no configuration is being loaded, and prevents others from being loaded until it ends. */
  readonly alone: (take: () => Promise<void>) => Promise<void>;
}

/**
 * Minimum number of milliseconds between restarts of a worker that keeps dying. The first time, it is replaced at once.
 */
const RESPAWN_MS = 1000;
/**
 * Milliseconds within which two losses of the same worker probably have the same cause. The second time, it is
 * therefore replaced after a pause.
 */
const AGAIN_MS = 10_000;
/**
 * Milliseconds after a worker's grace period by which it must have closed its listeners. Otherwise it is considered
 * hung and is not waited for.
 */
const SLACK_MS = 500;

/** The reason why a worker was lost, used as a metric label. */
type Loss = 'died' | 'hung';

/** The problem reported for a configuration that made a worker hang while building it, so that it cannot be served. */
class BuildHangs extends Problem {
  constructor(worker: number) {
    super({
      code: 'configuration-hangs',
      text: `worker ${worker} hangs while it builds the configuration`,
      hint: 'A plugin is reading or computing endlessly, or far too much.',
      remedy: 'Remove the last addition, or raise -hang (a build may take ten times that long).',
    });
  }
}

/** Milliseconds that an event loop has spent so far, by activity. */
export interface ThreadTimes {
  readonly name: string;
  readonly active: number;
  readonly idle: number;
}

/** A server's workers: gives them orders, and replaces any that die or hang. */
export class Workers {
  readonly #parts: WorkersParts;
  readonly #watchdog: Watchdog<WorkerLink>;
  readonly #restarts: Family<readonly ['reason'], Counter>;
  readonly #states: Family<readonly ['state'], Gauge>;
  #links: WorkerLink[] = [];
  /** Time of each worker's last loss. */
  readonly #lostAt = new Map<number, number>();
  /** Threads that could not be ended. */
  readonly #stuck = new Set<WorkerLink>();
  #starting = true;
  #wanted = 1;
  #ending = false;

  constructor(parts: WorkersParts) {
    this.#parts = parts;
    const { clock, hangMs, metrics } = parts;
    this.#watchdog = new Watchdog({ clock, hangMs, onHang: (worker) => this.#hung(worker) });
    this.#restarts = metrics.counter(
      'ndots_worker_restarts_total',
      'Workers that were replaced, by reason: they died (a bug, no memory left) or hung (their event loop did not turn).',
      ['reason'],
    );
    this.#states = metrics.gauge(
      'ndots_workers',
      'Worker threads by state: answering, or hung but not ended yet.',
      ['state'],
    );
    for (const reason of ['died', 'hung']) this.#restarts.with(reason);
    this.#count();
  }

  /** Starts workers until there are `count`. New ones have nothing to serve yet. */
  start(count: number): void {
    this.#wanted = count;
    while (this.#links.length < count) this.#links.push(this.#spawn(this.#links.length));
  }

  get wanted(): number {
    return this.#wanted;
  }

  /** Called when the first configuration is being served. From then on, lost workers are replaced. */
  serving(): void {
    this.#starting = false;
    // A worker that was lost while the others began to serve could not be replaced any earlier.
    for (const link of this.#links) if (link.gone) this.#replace(link, 0);
    this.#count();
  }

  /** True if any worker answers, and also during startup, when there is nothing to serve yet. */
  get answering(): boolean {
    return this.#starting || this.#links.some(({ serving }) => serving);
  }

  threads(): readonly ThreadTimes[] {
    return this.#links.flatMap(({ id, times }) =>
      times === null ? [] : [{ name: `worker-${id}`, ...times }],
    );
  }

  /** Returns a listen address's actual port (`dns://:0`), or 0. */
  port(server: string): number {
    return this.#links[0]?.ports[server] ?? 0;
  }

  /**
   * Gives all workers an order. If a worker dies in the meantime, it is ignored, because its replacement gets the
   * current program. At startup, it is not ignored. A configuration that makes a worker hang, however, is rejected.
   * @throws Problem reported by a worker
   */
  async orderAll(order: Order): Promise<void> {
    await Promise.all(
      this.#links.map((link) =>
        link.order(order).catch((error: unknown) => {
          if (!link.gone || error instanceof BuildHangs || this.#starting) throw error;
        }),
      ),
    );
  }

  /** Gives orders whose outcome does not matter. */
  async tellAll(order: Order): Promise<void> {
    await Promise.allSettled(this.#links.map((link) => link.order(order)));
  }

  /**
   * Ends all workers. Queries in flight get `graceMs`.
   * @returns true if all have ended. A thread that hangs outside JavaScript cannot be ended
   */
  async end(graceMs: number): Promise<boolean> {
    this.#ending = true;
    await within(
      this.#parts.clock,
      graceMs + SLACK_MS,
      this.tellAll({ kind: 'close', graceMs: Math.max(0, graceMs) }),
    );
    const ended = await Promise.all(this.#links.map((link) => this.#end(link)));
    this.#links = [];
    this.#count();
    return ended.every(Boolean) && this.#stuck.size === 0;
  }

  #spawn(id: number): WorkerLink {
    const { channels, collection, spawn } = this.#parts;
    const events: WorkerEvents = {
      join: (worker, channel) => channels.join(worker, channel),
      leave: (worker, channel) => channels.leave(worker, channel),
      post: (worker, channel, message) => channels.post(worker, channel, message),
      register: (worker, registration) => collection.add(`worker-${worker.id}`, registration),
      exit: (worker, error) => this.#died(worker, error),
    };
    const link = new WorkerLink(id, spawn(id, this.#wanted), events);
    this.#watchdog.watch(link);
    return link;
  }

  async #end(link: WorkerLink, hangs = false): Promise<boolean> {
    const ended = await link.end(hangs);
    link.giveUp(new Error('the worker was ended'));
    this.#watchdog.forget(link);
    if (!ended) this.#hold(link);
    return ended;
  }

  /**
   * Remembers a thread that could not be ended, until it gets CPU time again or its call returns, and it ends after
   * all.
   */
  #hold(link: WorkerLink): void {
    this.#stuck.add(link);
    void link.ended.then(() => {
      this.#stuck.delete(link);
      this.#parts.log.info(`worker ${link.id}, which was replaced, has ended`);
      this.#count();
    });
  }

  #died(worker: WorkerLink, error: Error): void {
    this.#watchdog.forget(worker);
    this.#forget(worker);
    // If a worker does not even start, startup fails as a whole, without a retry.
    if (this.#ending || this.#starting) return;
    this.#parts.log.error(
      `worker ${worker.id} ended unexpectedly and is being restarted: ${error.message}`,
    );
    this.#lost(worker, 'died');
  }

  /**
   * Replaces a worker that hangs, even if its thread cannot be ended. In that case, a CPU is lost until the process
   * ends.
   */
  #hung(worker: WorkerLink): void {
    const { log, hangMs } = this.#parts;
    const text = `worker ${worker.id} hangs: its event loop has not turned for ${hangMs / 1000}s`;
    if (this.#ending || this.#starting) log.error(text);
    else log.error(`${text}; it is being replaced`);
    const builds = this.#starting || (worker.pulse !== null && isBuilding(worker.pulse));
    worker.giveUp(builds ? new BuildHangs(worker.id) : new Error(text));
    this.#forget(worker);
    void this.#end(worker, true).then((ended) => {
      if (!ended) {
        log.error(`worker ${worker.id} could not be ended yet, and may use a whole CPU until then`);
      }
      this.#count();
      if (!this.#ending && !this.#starting) this.#lost(worker, 'hung');
    });
  }

  /** Stops listening to a worker's messages. */
  #forget(worker: WorkerLink): void {
    this.#parts.channels.forget(worker);
    this.#parts.collection.retire(`worker-${worker.id}`);
    this.#count();
  }

  #lost(worker: WorkerLink, loss: Loss): void {
    this.#restarts.with(loss).add(1);
    const now = this.#parts.clock.now();
    const again = now - (this.#lostAt.get(worker.id) ?? -Infinity) < AGAIN_MS;
    this.#lostAt.set(worker.id, now);
    this.#replace(worker, again ? RESPAWN_MS : 0);
  }

  /**
   * Starts a replacement. If a configuration is being loaded, the replacement waits, so that it starts with that one.
   */
  #replace(worker: WorkerLink, waitMs: number): void {
    const { alone, clock } = this.#parts;
    clock.after(waitMs, () => void alone(() => this.#respawn(worker)));
  }

  async #respawn(worker: WorkerLink): Promise<void> {
    if (this.#ending) return;
    const { log } = this.#parts;
    let link: WorkerLink;
    try {
      link = this.#spawn(worker.id);
    } catch (error) {
      log.error(`worker ${worker.id} could not be restarted and will be retried: ${whyNot(error)}`);
      this.#replace(worker, RESPAWN_MS);
      return;
    }
    this.#links = this.#links.map((other) => (other === worker ? link : other));
    try {
      await this.#revive(link);
      this.#count();
      log.info(`worker ${link.id} serves again`);
    } catch (error) {
      // The replacement was lost as well and is being replaced itself, unless the whole server is ending.
      if (link.gone || this.#ending) return;
      log.error(`worker ${link.id} could not be restarted and will be retried: ${whyNot(error)}`);
      await this.#end(link);
      this.#forget(link);
      this.#replace(link, RESPAWN_MS);
    }
  }

  async #revive(link: WorkerLink): Promise<void> {
    const program = this.#parts.program();
    if (program === null) return;
    const { generation } = program;
    await link.order({ kind: 'prepare', program });
    await link.order({ kind: 'open', generation });
    await link.order({ kind: 'commit', generation });
  }

  #count(): void {
    this.#states.with('answering').set(this.#links.filter(({ serving }) => serving).length);
    this.#states.with('stuck').set(this.#stuck.size);
  }
}

function whyNot(error: unknown): string {
  return problemsIn(error)?.[0]?.print() ?? String(error);
}
