/** The part on the control thread, which follows etcd and updates the workers. */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import type { MemoryTerms } from '../../runtime/memory-share.ts';
import { EtcdClient } from '../../etcd/client.ts';
import { Mirror } from '../../etcd/mirror.ts';
import type { Registry } from '../../metrics/registry.ts';
import type { KeptAcrossReloads } from '../../engine/contract/control-context.ts';
import type { OpenDataSet } from '../../engine/contract/data-set.ts';
import { waitBeforeServing } from '../../engine/contract/startup.ts';
import type { KeyRoom } from './key-memory.ts';
import { rangesOf, type EtcdPlan } from './etcd-plan.ts';
import { EtcdStore } from './store.ts';

export interface FollowerParts {
  readonly plan: EtcdPlan;
  readonly open: OpenDataSet;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
  readonly room: KeyRoom;
  /** The etcd client; tests use their own. */
  readonly client?: Pick<EtcdClient, 'range' | 'watch' | 'moveOn' | 'lease' | 'close'>;
}

/** Covers the copies here and in each worker, and changes on their way to them. */
export const KEY_MEMORY: MemoryTerms = { times: 4, least: 8 * 1024 * 1024, unlimited: 2 ** 30 };

/** Follows etcd on the control thread and updates the workers. It survives reloads that do not change the plan. */
export class EtcdFollower implements KeptAcrossReloads {
  readonly #parts: FollowerParts;
  readonly #client: NonNullable<FollowerParts['client']>;
  readonly #store: EtcdStore;
  readonly #mirror: Mirror;
  #synced = false;
  #waiting: (() => void)[] = [];

  constructor(parts: FollowerParts) {
    this.#parts = parts;
    const { plan, clock, random, log, metrics, room, open } = parts;
    const client = parts.client ?? new EtcdClient({ ...plan, clock });
    this.#client = client;
    this.#store = new EtcdStore({
      ...plan,
      room,
      open,
      askLease: (id) => client.lease(id),
      clock,
      log,
      metrics,
      onListed: () => this.#listed(),
    });
    this.#mirror = new Mirror({
      client,
      ranges: rangesOf(plan),
      target: this.#store,
      hooks: hooksOf(metrics, plan.prefix === '' ? '/' : plan.prefix),
      clock,
      random,
      log,
    });
    room.whenFreed(() => {
      if (this.#store.lacksRoom) this.#mirror.listAgain();
    });
  }

  get synced(): boolean {
    return this.#synced;
  }

  start(): void {
    this.#mirror.start();
  }

  /** Waits until the workers have the first complete list, but no longer than `timeoutMs`, and logs the wait. */
  whenSynced(timeoutMs: number): Promise<void> {
    const { clock, log } = this.#parts;
    return waitBeforeServing({
      clock,
      log,
      timeoutMs,
      whenReady: (run) => (this.#synced ? run() : this.#waiting.push(run)),
      everyMs: 1000,
      waiting: 'waiting for etcd before starting server',
      late: 'starting server before etcd has been listed; answers are SERVFAIL until then',
    });
  }

  async close(): Promise<void> {
    for (const run of this.#waiting.splice(0)) run();
    this.#store.close();
    this.#client.close();
    await this.#mirror.stop();
  }

  #listed(): void {
    this.#store.whenApplied(() => {
      this.#synced = true;
      for (const run of this.#waiting.splice(0)) run();
    });
  }
}

function hooksOf(
  metrics: Registry,
  path: string,
): ConstructorParameters<typeof Mirror>[0]['hooks'] {
  const lists = metrics.counter(
    'ndots_etcd_lists_total',
    'Listings of all keys: at startup, or because the history was compacted, etcd was restored, or a message was too large.',
    ['path', 'reason'],
  );
  const failures = metrics.counter('ndots_etcd_failures_total', 'Failed exchanges with etcd.', [
    'path',
    'kind',
  ]);
  const following = metrics
    .gauge('ndots_etcd_following', '1 while etcd is being watched, 0 while it is unavailable.', [
      'path',
    ])
    .with(path);
  const revision = metrics
    .gauge('ndots_etcd_revision', 'The etcd revision of the current answers.', ['path'])
    .with(path);
  following.set(0);
  return {
    listed: (reason) => lists.with(path, reason).add(1),
    failed: (kind) => failures.with(path, kind).add(1),
    following: (follows) => following.set(follows ? 1 : 0),
    reached: (reached) => revision.set(reached),
  };
}
