/** Runs ndots' own checks in this process, without a pod. */
import { sleep, type Clock } from '../../server/base/clock.ts';
import type { FailureReport } from '../../server/base/failure-report.ts';
import { bugText, type Log } from '../../server/base/log.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import type { KuberhealthyReport } from '../../tools/probe/kuberhealthy/report.ts';
import type { CheckCluster } from './check-cluster.ts';
import { reported, type RecordEvent } from './check-events.ts';
import { fullName, type CheckObject } from './check-object.ts';
import { isOfObject } from './object-failure.ts';
import type { RefusedChecks } from './refused-checks.ts';

/** Limit on concurrent runs, which measure latency and would interfere with each other. */
const OWN_MAX = 4;
/** Delay before a failed state write is retried. */
const REST_MS = 5000;

export interface OwnRunsParts {
  readonly cluster: CheckCluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly record: RecordEvent;
  /** Runs the checks in a check file. Never rejects because of bad input or network errors. */
  readonly runOwn: (
    content: string,
    check: CheckObject,
    signal: AbortSignal,
  ) => Promise<KuberhealthyReport>;
}

export class OwnRuns {
  readonly #parts: OwnRunsParts;
  readonly #failures: FailureReport;
  readonly #refused: RefusedChecks;
  readonly #runs = new Map<string, AbortController>();
  /** Number of runs that are about to start. */
  #beginning = 0;

  /**
   * @param failures reports failures that affect all checks
   * @param refused skips checks of any kind
   */
  constructor(parts: OwnRunsParts, failures: FailureReport, refused: RefusedChecks) {
    this.#parts = parts;
    this.#failures = failures;
    this.#refused = refused;
  }

  /** True if another run would interfere with those in progress. */
  get isFull(): boolean {
    return this.#runs.size + this.#beginning >= OWN_MAX;
  }

  has(run: string): boolean {
    return this.#runs.has(run);
  }

  /** Reserves a slot for a run while its start is being recorded. */
  async begin(write: () => Promise<void>): Promise<void> {
    this.#beginning++;
    try {
      await write();
    } finally {
      this.#beginning--;
    }
  }

  /** Aborts a run that is in progress, without storing a result. */
  abort(run: string): void {
    this.#runs.get(run)?.abort();
  }

  abortAll(): void {
    for (const run of this.#runs.values()) run.abort();
  }

  /**
   * Runs the checks and stores the results. Never rejects.
   * @param content a check file
   */
  async run(check: CheckObject, content: string, run: string, signal: AbortSignal): Promise<void> {
    const { runOwn, log } = this.#parts;
    const stop = new AbortController();
    this.#runs.set(run, stop);
    const either = AbortSignal.any([signal, stop.signal]);
    try {
      const report = await runOwn(content, check, either);
      if (!either.aborted) await this.#write(check, run, report, either);
    } catch (error) {
      if (!either.aborted) log.error(`${fullName(check)}: ${bugText(error)}`);
    } finally {
      this.#runs.delete(run);
    }
  }

  async #write(
    check: CheckObject,
    run: string,
    { OK: ok, Errors: errors }: KuberhealthyReport,
    signal: AbortSignal,
  ): Promise<void> {
    const { cluster, clock, record } = this.#parts;
    for (;;) {
      try {
        const written = await cluster.endRun(check, run, { ok, errors }, signal);
        if (written !== null) record(check, reported({ ok, errors }));
        return;
      } catch (error) {
        if (!(error instanceof ApiFailure) || signal.aborted) throw error;
        // Other checks proceed; this run is abandoned later.
        if (isOfObject(error)) return this.#refused.add(check, error);
        this.#failures.failed(error, REST_MS, 'states stay unchanged');
      }
      await sleep(clock, REST_MS, signal);
    }
  }
}
