/** Runs of ndots' own checks, which need no pod: they run in this process. */
import { sleep, type Clock } from '../../server/base/clock.ts';
import type { FailureReport } from '../../server/base/failure-report.ts';
import { bugText, type Log } from '../../server/base/log.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import type { KuberhealthyReport } from '../../tools/probe/kuberhealthy/report.ts';
import type { CheckCluster } from './check-cluster.ts';
import { reported, type RecordEvent } from './check-events.ts';
import { fullName, type CheckObject } from './check-object.ts';
import { ended } from './check-state.ts';
import { isOfObject } from './object-failure.ts';
import type { RefusedChecks } from './refused-checks.ts';

/** Checks of ndots that run at the same time: they measure times. */
const OWN_MAX = 4;
/** Delay before a failed write of a state is retried. */
const REST_MS = 5000;

export interface OwnRunsParts {
  readonly cluster: CheckCluster;
  readonly clock: Clock;
  readonly log: Log;
  /** Name of this replica, also in states. */
  readonly authoritativePod: string;
  readonly record: RecordEvent;
  /** Runs checks of ndots, written as a file of checks. Never rejects for what a person or a network may do. */
  readonly runOwn: (
    content: string,
    check: CheckObject,
    signal: AbortSignal,
  ) => Promise<KuberhealthyReport>;
}

/** The runs in progress. */
export class OwnRuns {
  readonly #parts: OwnRunsParts;
  readonly #failures: FailureReport;
  readonly #refused: RefusedChecks;
  /** Run → what ends it. */
  readonly #runs = new Map<string, AbortController>();
  /** Runs that are about to begin. */
  #beginning = 0;

  /** @param failures, refused those of all checks */
  constructor(parts: OwnRunsParts, failures: FailureReport, refused: RefusedChecks) {
    this.#parts = parts;
    this.#failures = failures;
    this.#refused = refused;
  }

  /** True if one more run would disturb the others. */
  get isFull(): boolean {
    return this.#runs.size + this.#beginning >= OWN_MAX;
  }

  has(run: string): boolean {
    return this.#runs.has(run);
  }

  /** Keeps room for a run while its beginning is written down. */
  async begin(write: () => Promise<void>): Promise<void> {
    this.#beginning++;
    try {
      await write();
    } finally {
      this.#beginning--;
    }
  }

  /** Ends a run, if it is in progress, without a result. */
  abort(run: string): void {
    this.#runs.get(run)?.abort();
  }

  abortAll(): void {
    for (const run of this.#runs.values()) run.abort();
  }

  /** Runs the checks and stores their results. Never rejects. @param content a file of checks */
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
    const { cluster, clock, authoritativePod, record } = this.#parts;
    for (;;) {
      try {
        const written = await cluster.changeState(
          check,
          (now) =>
            now.state.run === run && now.state.isRunning
              ? ended(now, { ok, errors, authoritativePod }, clock.wall())
              : null,
          signal,
        );
        if (written !== null) record(check, reported({ ok, errors }));
        return;
      } catch (error) {
        if (!(error instanceof ApiFailure) || signal.aborted) throw error;
        // Others wait for their turn: the run is given up later.
        if (isOfObject(error)) return this.#refused.add(check, error);
        this.#failures.failed(error, REST_MS, 'states stay unchanged');
      }
      await sleep(clock, REST_MS, signal);
    }
  }
}
