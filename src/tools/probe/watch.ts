/** Runs checks repeatedly, and tracks each target's state and history. */
import { sleep, type Clock } from '../../server/base/clock.ts';
import { bugText, type Log } from '../../server/base/log.ts';
import type { Random } from '../../server/base/random.ts';
import type { MetricSample } from '../../server/metrics/sample.ts';
import { burnAlerts, ErrorBudget } from './budget.ts';
import type { PlannedCheck } from './check-file.ts';
import { worst, type CheckState, type Observation, type ProbeContext } from './check.ts';
import { runCheck } from './round.ts';
import { isUp, samplesOf, stateSamples } from './samples.ts';

export interface WatchParts {
  readonly checks: readonly PlannedCheck[];
  /** Returns the context for checks. Called before each round, because replicas come and go. */
  readonly context: () => ProbeContext;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Limit on targets to track. Others are checked but not tracked. */
  readonly targetsMax: number;
}

/** The number of rounds in a row that must fail before a target is down, so that one lost query is not an outage. */
const DOWN_AFTER = 2;
/** A failed round is repeated after this fraction of the interval. */
const CONFIRM = 0.25;
/** Intervals vary by this fraction, to prevent instances from running in lockstep. */
const JITTER = 0.1;
/** A target that has not been seen for this many intervals is dropped, because its replica has been replaced. */
const FORGET_AFTER = 10;

/** A target with its current and past state. */
interface WatchedCheck {
  readonly check: PlannedCheck;
  readonly budget: ErrorBudget;
  last: Observation;
  seenAt: number;
  /** Consecutive failed rounds. */
  failures: number;
  rounds: number;
  sent: number;
  lost: number;
  seconds: number;
}

/** A target's status, for pages and JSON. */
export interface TargetStatus {
  readonly check: string;
  readonly title: string;
  readonly target: string;
  readonly state: CheckState;
  readonly isDown: boolean;
  readonly text: string;
  /** Milliseconds, or null if there is no reply. */
  readonly tookMs: number | null;
  /** The name of the active burn-rate alert, or null if there is none. */
  readonly alert: string | null;
  /** The fraction of the 30-day budget that remains. */
  readonly budgetLeft: number;
}

/** Runs each check at its own interval until aborted. */
export class CheckSchedule {
  readonly #parts: WatchParts;
  readonly #targets = new Map<string, WatchedCheck>();
  #forgotten = 0;
  #rounds = 0;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /** Runs until the signal aborts, and only rejects because of a bug. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#parts.checks.map((check) => this.#follow(check, signal)));
  }

  /** True once every check has completed its first round. */
  get isReady(): boolean {
    return this.#rounds >= this.#parts.checks.length;
  }

  async #follow(check: PlannedCheck, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#parts;
    const share = (): number => random.integer(1 << 20) / (1 << 20);
    const { everyMs } = check;
    // Spread out the first rounds.
    await sleep(clock, share() * Math.min(everyMs, 5000), signal);
    let isConfirmed = true;
    while (!signal.aborted) {
      const begun = clock.now();
      const suspects = await this.#round(check);
      // Repeats a first failure soon, to confirm or clear it before the next regular round.
      const confirm: boolean = suspects && isConfirmed;
      isConfirmed = !confirm;
      const wait = everyMs * (confirm ? CONFIRM : 1 - JITTER * share());
      await sleep(clock, Math.max(everyMs * CONFIRM, wait - (clock.now() - begun)), signal);
    }
  }

  /** @returns true if a target failed that is not down yet */
  async #round(check: PlannedCheck): Promise<boolean> {
    const { clock, log, context } = this.#parts;
    let observations: readonly Observation[];
    try {
      ({ observations } = await runCheck(check, context(), clock));
    } catch (error) {
      log.error(`${check.id}: ${bugText(error)}`);
      return false;
    }
    this.#rounds++;
    const now = clock.now();
    let suspects = false;
    for (const observation of observations) {
      const watched = this.#take(check, observation, now);
      if (watched !== null && watched.failures > 0 && watched.failures < DOWN_AFTER)
        suspects = true;
    }
    this.#sweep(check, now);
    return suspects;
  }

  #take(check: PlannedCheck, observation: Observation, now: number): WatchedCheck | null {
    const { log, targetsMax } = this.#parts;
    const key = `${check.id} ${observation.target}`;
    let watched = this.#targets.get(key);
    if (watched === undefined) {
      if (this.#targets.size >= targetsMax) {
        this.#forgotten++;
        return null;
      }
      watched = {
        check,
        budget: new ErrorBudget(check.objective, check.everyMs),
        last: observation,
        seenAt: now,
        failures: 0,
        rounds: 0,
        sent: 0,
        lost: 0,
        seconds: 0,
      };
      this.#targets.set(key, watched);
    }
    const { state } = observation;
    const wasDown = watched.failures >= DOWN_AFTER;
    // An unknown state does not affect the budget.
    if (state !== 'unknown') watched.budget.add(now, isUp(state));
    if (state !== 'unknown') watched.failures = state === 'failed' ? watched.failures + 1 : 0;
    watched.last = observation;
    watched.seenAt = now;
    watched.rounds++;
    watched.sent += observation.sent;
    watched.lost += observation.lost;
    watched.seconds += (observation.tookMs ?? 0) / 1000;
    const isDown = watched.failures >= DOWN_AFTER;
    if (isDown && !wasDown) log.error(`${key} is down: ${observation.text}`);
    if (!isDown && wasDown) log.info(`${key} is back: ${observation.text}`);
    return watched;
  }

  #sweep(check: PlannedCheck, now: number): void {
    for (const [key, watched] of this.#targets)
      if (watched.check === check && now - watched.seenAt > check.everyMs * FORGET_AFTER)
        this.#targets.delete(key);
  }

  status(): readonly TargetStatus[] {
    const now = this.#parts.clock.now();
    return Array.from(this.#targets.values(), ({ check, budget, last, failures }) => ({
      check: check.kind.name,
      title: check.title,
      target: last.target,
      state: last.state,
      isDown: failures >= DOWN_AFTER,
      text: last.text,
      tookMs: last.tookMs,
      alert: budget.alert(now)?.name ?? null,
      budgetLeft: budget.left(now),
    }));
  }

  /** The worst state of any target. It is `failed` only if a target is down, and `warning` if one may be. */
  get state(): CheckState {
    return worst(
      this.status().map(({ state, isDown }) => (state === 'failed' && !isDown ? 'warning' : state)),
    );
  }

  samples(): readonly MetricSample[] {
    const now = this.#parts.clock.now();
    const found: MetricSample[] = [];
    for (const watched of this.#targets.values()) {
      const { check, budget, last } = watched;
      const labels = { check: check.kind.name, title: check.title, target: last.target };
      const up = last.state === 'unknown' ? null : Number(watched.failures < DOWN_AFTER);
      const seconds = last.tookMs === null ? null : last.tookMs / 1000;
      found.push(
        ...samplesOf(labels, [['gauge', 'up', UP_HELP, up]]),
        ...stateSamples(labels, last.state),
        ...samplesOf(labels, [
          ['counter', 'rounds_total', 'Rounds.', watched.rounds],
          ['counter', 'queries_total', 'Queries that were sent.', watched.sent],
          ['counter', 'queries_lost_total', 'Queries without a reply.', watched.lost],
          [
            'counter',
            'duration_seconds_total',
            'Time to an answer, over all rounds.',
            watched.seconds,
          ],
          ['gauge', 'duration_seconds', 'Duration of the last answer.', seconds],
          [
            'gauge',
            'error_budget_left',
            'Remaining share of the 30-day error budget.',
            budget.left(now),
          ],
        ]),
        ...burnAlerts.flatMap(({ name, longMs }) =>
          samplesOf({ ...labels, alert: name }, [
            ['gauge', 'burn_rate', BURN_RATE_HELP, budget.burnRate(now, longMs)],
          ]),
        ),
        ...samplesOf(labels, [
          ['gauge', 'burn_alert', BURN_ALERT_HELP, Number(budget.alert(now) !== null)],
        ]),
      );
    }
    found.push(
      ...samplesOf({}, [
        ['gauge', 'targets', 'Stored targets.', this.#targets.size],
        ['counter', 'targets_forgotten_total', FORGOTTEN_HELP, this.#forgotten],
        ['gauge', 'checks', 'Checks that run.', this.#parts.checks.length],
      ]),
    );
    return found;
  }
}

const UP_HELP =
  'Whether the target is up: 0 after two consecutive failed rounds; absent while unknown.';
const BURN_RATE_HELP =
  'Burn rate of the error budget over the alert’s long window; 1 is the allowed rate.';
const BURN_ALERT_HELP = 'Whether the budget is spent too fast in one of the window pairs.';
const FORGOTTEN_HELP = 'Observations of targets beyond the limit, which are dropped.';
