/** Deletes pods whose runs have ended, completed jobs, and states whose checks no longer exist. */
import { sleep, type Clock } from '../../server/base/clock.ts';
import { FailureReport } from '../../server/base/failure-report.ts';
import { bugText, type Log } from '../../server/base/log.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import type { CheckCluster } from './check-cluster.ts';
import type { CheckEvent, RecordEvent } from './check-events.ts';
import { fullName, type CheckObject } from './check-object.ts';
import type { CheckerPod } from './check-pod.ts';
import type { CheckWatch } from './check-watch.ts';
import { isOfObject } from './object-failure.ts';

/** The number of ended pods that each check retains for inspection. */
export interface Retention {
  readonly completed: number;
  readonly failed: number;
  /** Maximum age of failed pods, milliseconds. */
  readonly failedMs: number;
  /** Time between the start of a job and the deletion of its pod, in milliseconds. */
  readonly jobsMs: number;
}

/** Why a pod was deleted, used as a label on one of Kuberhealthy's metrics. */
export type SweepReason = 'timeout' | 'completed' | 'failed' | 'expired';

const EVERY_MS = 30_000;
/** A pod that does not end is retained for at least this long, for inspection. */
const UNENDED_MS = 5 * 60_000;
/** Limit on deletions per round, to spare the API server. */
const DELETIONS_MAX = 200;

/** Sweeps every 30 seconds. */
export class PodSweeper {
  readonly #parts: SweeperParts;
  readonly #failures: FailureReport;
  readonly #deleted = new Map<SweepReason, number>();
  /**
   * Pods that could not be deleted in the last round for reasons of their own. The next round leaves them until last.
   */
  #refused = new Set<string>();
  #tookSeconds = 0;

  constructor(parts: SweeperParts) {
    this.#parts = parts;
    const { clock, log } = parts;
    this.#failures = new FailureReport({ clock, log, work: 'clearing away pods' });
  }

  get deleted(): ReadonlyMap<SweepReason, number> {
    return this.#deleted;
  }

  /** Duration of the last round. */
  get tookSeconds(): number {
    return this.#tookSeconds;
  }

  /** Runs until aborted. Logs failures and retries, and never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts;
    while (!signal.aborted) {
      await sleep(clock, EVERY_MS, signal);
      if (signal.aborted) return;
      const begun = clock.now();
      try {
        await this.#sweep(signal);
        this.#failures.over();
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiFailure) this.#failures.failed(error, EVERY_MS, 'pods stay');
        else log.error(bugText(error));
      }
      this.#tookSeconds = (clock.now() - begun) / 1000;
    }
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    const { watch, log } = this.#parts;
    if (!watch.isSynced) return;
    const refused = new Set<string>();
    let failure: ApiFailure | null = null;
    const all = this.#deletions(signal);
    const later = (each: Deletion): number => (this.#refused.has(each.what) ? 1 : 0);
    for (const deletion of all.toSorted((a, b) => later(a) - later(b)).slice(0, DELETIONS_MAX)) {
      try {
        await deletion.run();
        log.debug(`deleted ${deletion.what}`);
      } catch (error) {
        if (!(error instanceof ApiFailure) || !isOfObject(error)) throw error;
        refused.add(deletion.what);
        failure ??= error;
      }
    }
    this.#refused = refused;
    if (failure !== null) throw failure;
  }

  /** All pending deletions, pods first. */
  #deletions(signal: AbortSignal): readonly Deletion[] {
    const { watch, cluster, retention, log, record } = this.#parts;
    const found: Deletion[] = [];
    for (const version of watch.versions) {
      for (const [reason, pod] of outlived([...watch.pods.ofVersion(version)], watch, retention)) {
        const run = async (): Promise<void> => {
          await cluster.deletePod(pod, signal);
          const check = checkOf(pod, watch);
          if (check !== null) record(check, EVENTS[reason](pod.name));
          this.#deleted.set(reason, (this.#deleted.get(reason) ?? 0) + 1);
        };
        found.push({ what: `pod ${pod.namespace}/${pod.name} (${reason})`, run });
      }
    }
    for (const orphan of watch.orphans())
      found.push({
        what: `khstate ${fullName(orphan)}`,
        run: () => cluster.deleteObject('khstates', orphan, signal),
      });
    for (const job of watch.checks()) {
      if (job.phase !== 'Completed' || watch.sinceBegun(job) <= retention.jobsMs) continue;
      const run = async (): Promise<void> => {
        await cluster.deleteObject('khjobs', job, signal);
        log.info(`${fullName(job)}: the job is completed and old enough to be deleted`);
      };
      found.push({ what: `khjob ${fullName(job)}`, run });
    }
    return found;
  }
}

interface Deletion {
  /** Description of the object, for the log. */
  readonly what: string;
  /** Rejects with an `ApiFailure`, or when aborted. */
  readonly run: () => Promise<void>;
}

interface SweeperParts {
  readonly watch: CheckWatch;
  readonly cluster: CheckCluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly record: RecordEvent;
  readonly retention: Retention;
}

/** Pods that are no longer needed. Each check keeps its newest ones. */
function outlived(
  pods: readonly CheckerPod[],
  watch: Pick<CheckWatch, 'get' | 'pods'>,
  { completed, failed, failedMs }: Retention,
): readonly (readonly [SweepReason, CheckerPod])[] {
  const found: (readonly [SweepReason, CheckerPod])[] = [];
  const kept = new Map<string, number>();
  const stays = (pod: CheckerPod, most: number): boolean => {
    const key = `${pod.namespace}/${pod.check} ${pod.phase}`;
    const count = (kept.get(key) ?? 0) + 1;
    kept.set(key, count);
    return count <= most;
  };
  for (const pod of pods.toSorted((a, b) => b.madeAt - a.madeAt || (a.name < b.name ? 1 : -1))) {
    if (pod.isGoing) continue;
    const check = checkOf(pod, watch);
    const ageMs = watch.pods.ageOf(pod);
    if (check?.state.isRunning === true && check.state.run === pod.run) continue;
    if (pod.phase === 'Succeeded') {
      if (!stays(pod, completed)) found.push(['completed', pod]);
    } else if (pod.phase === 'Failed') {
      if (!stays(pod, failed) || ageMs > failedMs) found.push(['failed', pod]);
    } else if (
      check === null ? ageMs > UNENDED_MS : ageMs > Math.max(UNENDED_MS, 2 * check.timeoutMs)
    ) {
      found.push([check === null ? 'expired' : 'timeout', pod]);
    }
  }
  return found;
}

function checkOf(
  { version, namespace, check }: CheckerPod,
  watch: Pick<CheckWatch, 'get'>,
): CheckObject | null {
  if (version === 3) return watch.get('healthcheck', namespace, check);
  return watch.get('khcheck', namespace, check) ?? watch.get('khjob', namespace, check);
}

const EVENTS: Readonly<Record<SweepReason, (pod: string) => CheckEvent>> = {
  timeout: (pod) => ({
    type: 'Warning',
    reason: 'CheckRunTimeout',
    message: `deleted pod ${pod}, which did not end`,
  }),
  completed: (pod) => ({
    type: 'Normal',
    reason: 'CheckPodReaped',
    message: `deleted completed pod ${pod}`,
  }),
  failed: (pod) => ({
    type: 'Normal',
    reason: 'CheckFailedPodReaped',
    message: `deleted failed pod ${pod}`,
  }),
  expired: (pod) => ({
    type: 'Normal',
    reason: 'CheckPodExpired',
    message: `deleted pod ${pod}, which is too old`,
  }),
};
