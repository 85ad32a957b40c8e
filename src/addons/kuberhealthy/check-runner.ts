/** Runs on the leading replica. Starts runs when they are due, ends those that time out, and deletes old pods. */
import { sleep } from '../../server/base/clock.ts';
import { FailureReport } from '../../server/base/failure-report.ts';
import { bugText } from '../../server/base/log.ts';
import { printDuration } from '../../server/base/duration.ts';
import { child, text } from '../../server/base/json-object.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { fullName, isOfBefore, keyOf, type CheckObject } from './check-object.ts';
import { podOf } from './check-pod.ts';
import { begun, givenUp, podNotMade, timedOut } from './check-state.ts';
import type { CheckWatch } from './check-watch.ts';
import { isOfObject } from './object-failure.ts';
import { OwnRuns, type OwnRunsParts } from './own-runs.ts';
import { PodSweeper, type Retention } from './pod-sweeper.ts';
import { RefusedChecks } from './refused-checks.ts';

export interface CheckRunnerParts extends OwnRunsParts {
  readonly watch: CheckWatch;
  readonly retention: Retention;
  /** Returns random UUIDs, used as run names and secrets. */
  readonly newRun: () => string;
  /** The URL for reports, without the path. */
  readonly reportingUrl: (signal: AbortSignal) => Promise<string>;
  /** The likely reason why a checker that ran could not report, or `''` if unknown. */
  readonly whyUnreported: () => Promise<string>;
}

/** Scheduler state, for metrics. */
export interface RunnerNumbers {
  readonly loopSeconds: number;
  readonly due: number;
  readonly begun: number;
  /** The number of checks paused because the API server rejected their changes. */
  readonly refused: number;
}

/** The outcome of a request to run a check; `follows` means that another replica is the leader. */
export type RunRequest = 'begins' | 'follows' | 'unknown' | 'runs' | 'too-soon';

const TICK_MS = 1000;
/** Minimum time between a run and the next requested one, because any client may request runs. */
const ASKED_MS = 10_000;
/**
 * The number of checks handled in parallel, and of runs started per second. Both are limited to avoid flooding the
 * cluster with pods.
 */
const BUSY_MAX = 16;
const BEGIN_MAX = 20;
/**
 * Grace period after the deadline during which a report in transit may still be accepted. After that, the run fails.
 */
const GRACE_MS = 2000;
/** Pause after an API server failure. */
const REST_MS = 5000;
/** The pause lasts as long as the server's retry time, up to this limit. */
const REST_MAX_MS = 60_000;

/** Runs checks while this replica is the leader. */
export class CheckRunner {
  readonly #parts: CheckRunnerParts;
  readonly #failures: FailureReport;
  readonly #busy = new Set<string>();
  readonly #own: OwnRuns;
  readonly sweeper: PodSweeper;
  /** Checks to run before they are due, because a run was requested or the last one was abandoned. */
  readonly #asked = new Set<string>();
  /** Checks that the API server refused to change. */
  readonly #refused: RefusedChecks;
  /** Checks that failed last. After a pause, the others go first. */
  readonly #last = new Map<string, CheckObject>();
  #leads = false;
  #restUntil = -Infinity;
  #leadsSince = 0;
  /** Time of the last successful request to the API server. */
  #servedAt = -Infinity;
  #numbers = { loopSeconds: 0, due: 0, begun: 0 };

  constructor(parts: CheckRunnerParts) {
    this.#parts = parts;
    const { clock, log } = parts;
    this.#failures = new FailureReport({ clock, log, work: 'running checks' });
    this.#refused = new RefusedChecks(parts);
    this.#own = new OwnRuns(parts, this.#failures, this.#refused);
    this.sweeper = new PodSweeper(parts);
  }

  get numbers(): RunnerNumbers {
    return { ...this.#numbers, refused: this.#refused.size };
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    this.#leadsSince = clock.now();
    this.#leads = true;
    const sweeping = this.sweeper.run(signal);
    while (!signal.aborted) {
      this.#tick(signal);
      await sleep(clock, TICK_MS, signal);
    }
    this.#leads = false;
    this.#asked.clear();
    this.#refused.clear();
    this.#last.clear();
    this.#own.abortAll();
    await sweeping;
  }

  /** Runs a check immediately, without waiting until it is due. */
  ask(namespace: string, name: string): RunRequest {
    const { watch } = this.#parts;
    if (!this.#leads || !watch.isSynced) return 'follows';
    const check =
      watch.get('healthcheck', namespace, name) ?? watch.get('khcheck', namespace, name);
    if (check === null) return 'unknown';
    if (check.state.isRunning || this.#busy.has(keyOf(check))) return 'runs';
    if (watch.sinceBegun(check) < ASKED_MS) return 'too-soon';
    this.#asked.add(keyOf(check));
    return 'begins';
  }

  #tick(signal: AbortSignal): void {
    const { watch, clock } = this.#parts;
    const start = clock.now();
    if (!watch.isSynced || start < this.#restUntil) return;
    this.#forgetGone();
    let begins = 0;
    let due = 0;
    for (const check of this.#inTurn()) {
      const step = this.#stepFor(check);
      if (step === null) continue;
      if (step === this.#begin) {
        due++;
        if (begins >= BEGIN_MAX) continue;
      }
      if (this.#busy.size >= BUSY_MAX) continue;
      if (step === this.#begin) begins++;
      void this.#take(check, step, signal);
    }
    this.#numbers = {
      loopSeconds: (clock.now() - start) / 1000,
      due,
      begun: this.#numbers.begun,
    };
  }

  #forgetGone(): void {
    const { watch } = this.#parts;
    const isGone = ({ kind, namespace, name }: CheckObject): boolean =>
      watch.get(kind, namespace, name) === null;
    this.#refused.forget(isGone);
    for (const [key, check] of this.#last) if (isGone(check)) this.#last.delete(key);
  }

  *#inTurn(): Generator<CheckObject> {
    const { watch } = this.#parts;
    const last: CheckObject[] = [];
    for (const check of watch.checks()) {
      if (this.#last.has(keyOf(check))) last.push(check);
      else yield check;
    }
    yield* last;
  }

  /** Returns a check's next step, or null if there is nothing to do. */
  #stepFor(check: CheckObject): CheckStep | null {
    const { watch, clock } = this.#parts;
    const { state, ownChecks, timeoutMs, intervalMs, runsOnce, kind } = check;
    const key = keyOf(check);
    if (this.#busy.has(key) || check.isBlocked) return null;
    if (this.#refused.has(check)) return null;
    if (check.isGoing) return this.#letGo;
    if (isOfBefore(check)) return this.#mayBegin(check);
    const ageMs = watch.sinceBegun(check);
    if (state.isRunning) {
      const isMine = this.#own.has(state.run);
      // ndots' own checks run inside the process, so another process's runs ended with it.
      if (ownChecks !== null && !isMine) return this.#giveUp;
      if (ageMs <= timeoutMs + GRACE_MS) return null;
      // The run timed out while there was no leader to accept its report, so the check may be healthy.
      const ranOutAt = clock.now() - ageMs + timeoutMs;
      return ranOutAt < this.#leadsSince && !runsOnce ? this.#giveUp : this.#end;
    }
    if (kind === 'khjob' && check.phase !== '')
      return check.phase === 'Running' && hasReported(check) ? this.#complete : null;
    if (ageMs === Infinity) return this.#mayBegin(check);
    if (!this.#asked.has(key) && (runsOnce || ageMs < intervalMs)) return null;
    return this.#mayBegin(check);
  }

  #mayBegin({ ownChecks }: CheckObject): CheckStep | null {
    return ownChecks !== null && this.#own.isFull ? null : this.#begin;
  }

  async #take(check: CheckObject, step: CheckStep, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts;
    const key = keyOf(check);
    this.#busy.add(key);
    try {
      await step.call(this, check, signal);
      this.#servedAt = clock.now();
      this.#failures.over();
      this.#last.delete(key);
      this.#refused.delete(check);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiFailure) {
        if (this.#isOfCheck(error)) return this.#refused.add(check, error);
        this.#last.set(key, check);
        const restMs = Math.min(REST_MAX_MS, Math.max(REST_MS, error.retryAfterMs ?? 0));
        this.#restUntil = clock.now() + restMs;
        this.#failures.failed(error, restMs, 'states stay unchanged');
      } else log.error(`${fullName(check)}: ${bugText(error)}`);
    } finally {
      this.#busy.delete(key);
    }
  }

  /**
   * True if the failure concerns only one check, in which case the others continue. An API server that still serves
   * other requests is not down.
   */
  #isOfCheck(failure: ApiFailure): boolean {
    const { clock } = this.#parts;
    return (
      isOfObject(failure) || (failure.kind === 'server' && clock.now() - this.#servedAt < REST_MS)
    );
  }

  async #letGo(check: CheckObject, signal: AbortSignal): Promise<void> {
    await this.#parts.cluster.removeFinalizer(check, signal);
  }

  async #giveUp(check: CheckObject, signal: AbortSignal): Promise<void> {
    const { cluster, log } = this.#parts;
    const { run } = check.state;
    log.info(
      `${fullName(check)}: run ${run} is abandoned because it ended with the leading replica`,
    );
    const given = await cluster.changeState(
      check,
      ({ state }) => (state.run === run && state.isRunning ? givenUp(state) : null),
      signal,
    );
    if (given === null || given.kind === 'khjob') return;
    // Retried immediately rather than after the interval, because the check's state is unknown.
    if (this.#mayBegin(given) === null) this.#asked.add(keyOf(given));
    else await this.#begin(given, signal);
  }

  async #complete(job: CheckObject, signal: AbortSignal): Promise<void> {
    await this.#parts.cluster.changePhase(job, 'Running', 'Completed', signal);
  }

  async #begin(check: CheckObject, signal: AbortSignal): Promise<void> {
    this.#asked.delete(keyOf(check));
    if (check.ownChecks === null) return this.#beginRun(check, signal);
    await this.#own.begin(() => this.#beginRun(check, signal));
  }

  async #beginRun(check: CheckObject, signal: AbortSignal): Promise<void> {
    const { cluster, clock, newRun, reportingUrl, record } = this.#parts;
    const run = newRun();
    const url = check.ownChecks === null ? await reportingUrl(signal) : '';
    // Written before the pod is created, because the report may arrive right away.
    const started = await cluster.changeState(
      check,
      (now) =>
        (now.state.isRunning && !isOfBefore(now)) || now.isGoing
          ? null
          : begun(now.state, run, clock.wall()),
      signal,
    );
    if (started === null) return;
    // The replica that records this first runs the job, which will not run again even if this process dies.
    if (
      started.kind === 'khjob' &&
      (await cluster.changePhase(started, '', 'Running', signal)) === null
    )
      return;
    this.#numbers = { ...this.#numbers, begun: this.#numbers.begun + 1 };
    if (started.ownChecks !== null)
      return void this.#own.run(started, started.ownChecks, run, signal);
    const begunAt = started.state.begunAt ?? clock.wall();
    const pod = podOf(started, {
      run,
      token: newRun(),
      reportingUrl: url,
      begunAt,
      deadline: begunAt + started.timeoutMs,
      suffix: run.replaceAll('-', '').slice(0, 5),
    });
    try {
      await cluster.createPod(pod, started.namespace, signal);
      const message = `created pod ${text(child(pod, 'metadata'), 'name')}`;
      record(started, { type: 'Normal', reason: 'PodCreated', message });
    } catch (error) {
      if (!(error instanceof ApiFailure) || signal.aborted) throw error;
      const message = `failed to create pod: ${error.message}`;
      record(started, { type: 'Warning', reason: 'PodCreateFailed', message });
      await this.#fail(started, run, podNotMade(started, error.message), signal);
    }
  }

  async #end(check: CheckObject, signal: AbortSignal): Promise<void> {
    const { run } = check.state;
    this.#own.abort(run);
    const why =
      check.ownChecks === null ? await this.#whyUnreported(check) : 'the checks did not end';
    const message = `check run ${run} exceeded timeout ${printDuration(check.timeoutMs)}${why === '' ? '' : `: ${why}`}`;
    this.#parts.record(check, { type: 'Warning', reason: 'CheckRunTimedOut', message });
    await this.#fail(check, run, timedOut(check, why), signal);
  }

  /** The pod's own reason for not running, or else the likely reason why it could not report. */
  async #whyUnreported({ version, state }: CheckObject): Promise<string> {
    const { watch, whyUnreported } = this.#parts;
    if (!watch.pods.isListed(version)) return '';
    const pod = watch.pods.ofRun(version, state.run);
    if (pod === null) return 'its pod is gone';
    const told = `pod ${pod.name} is ${pod.condition}`;
    if (pod.phase === 'Pending') return told;
    const why = await whyUnreported();
    return why === '' ? told : `${told}; ${why}`;
  }

  async #fail(check: CheckObject, run: string, error: string, signal: AbortSignal): Promise<void> {
    const { cluster, log } = this.#parts;
    const failed = await cluster.endRun(check, run, { ok: false, errors: [error] }, signal);
    if (failed !== null) log.warning(`${fullName(check)}: ${error}`);
  }
}

/**
 * True if a job's pod has reported. Like Kuberhealthy, ndots does not repeat jobs that failed to run or report in time.
 */
function hasReported({ state }: CheckObject): boolean {
  return state.toldAt !== null && !(state.errors[0] ?? '').startsWith('Job execution error: ');
}

type CheckStep = (check: CheckObject, signal: AbortSignal) => Promise<void>;
