/** Temporarily skips checks whose changes the API server rejects while accepting others. */
import type { Clock } from '../../server/base/clock.ts';
import { FailureReport } from '../../server/base/failure-report.ts';
import type { Log } from '../../server/base/log.ts';
import type { ApiFailure } from '../../server/kube/api/failure.ts';
import { fullName, keyOf, type CheckObject } from './check-object.ts';

interface RefusedCheck {
  readonly check: CheckObject;
  /** Consecutive rejections. */
  readonly times: number;
  /** End of the pause. */
  readonly until: number;
}

/** The pause after the first rejection. Doubles with each further one, up to the second value. */
const REFUSED_MS = 5000;
const REFUSED_MAX_MS = 5 * 60_000;

/** The checks to skip, and when to resume each one. */
export class RefusedChecks {
  readonly #clock: Clock;
  readonly #failures: FailureReport;
  readonly #refused = new Map<string, RefusedCheck>();

  constructor(parts: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = parts.clock;
    const { clock, log } = parts;
    this.#failures = new FailureReport({ clock, log, work: 'running single checks' });
  }

  get size(): number {
    return this.#refused.size;
  }

  /** True if the check is currently skipped. */
  has(check: CheckObject): boolean {
    const refusal = this.#refused.get(keyOf(check));
    return refusal !== undefined && this.#clock.now() < refusal.until;
  }

  /** Records a rejected change. */
  add(check: CheckObject, failure: ApiFailure): void {
    const key = keyOf(check);
    const times = (this.#refused.get(key)?.times ?? 0) + 1;
    const restMs = Math.min(REFUSED_MAX_MS, REFUSED_MS * 2 ** (times - 1));
    this.#refused.set(key, { check, times, until: this.#clock.now() + restMs });
    const { kind, advice } = failure;
    const message = `${fullName(check)}: ${failure.message}`;
    this.#failures.failed({ kind, advice, message }, restMs, 'the others run');
  }

  /** Clears a check after a successful change. */
  delete(check: CheckObject): void {
    if (this.#refused.delete(keyOf(check)) && this.#refused.size === 0) this.#failures.over();
  }

  /** Drops checks that no longer exist. */
  forget(isGone: (check: CheckObject) => boolean): void {
    for (const [key, { check }] of this.#refused) if (isGone(check)) this.#refused.delete(key);
  }

  clear(): void {
    this.#refused.clear();
  }
}
