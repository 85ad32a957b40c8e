import type { Clock } from './clock.ts';
import { printDuration } from './duration.ts';
import type { Log } from './log.ts';

/** A failure, described for the log. */
export interface ReportedFailure {
  /** A single word. A failure of a different kind is reported immediately. */
  readonly kind: string;
  readonly message: string;
  /** The suggested action, or empty if there is nothing to do but wait. */
  readonly advice: string;
}

/** Minimum interval between reports of the same failure, in milliseconds. */
const REPEAT_MS = 60_000;

/**
 * Reports failures. The first of each kind is reported immediately, then at most one line per minute and kind, and
 * finally the recovery.
 */
export class FailureReport {
  readonly #log: Log;
  readonly #clock: Clock;
  /** The operation that is failing, e.g. `list and watch of services`. */
  readonly #work: string;
  #since: number | null = null;
  #failures = 0;
  /** Time of the last report, by kind. */
  readonly #toldAt = new Map<string, number>();
  #told = false;

  constructor(parts: { log: Log; clock: Clock; work: string }) {
    this.#log = parts.log;
    this.#clock = parts.clock;
    this.#work = parts.work;
  }

  /**
   * @param waitMs time until the next attempt; null if it is retried when needed
   * @param keptText the state served in the meantime, e.g. `answers use data from 2m ago`
   */
  failed(failure: ReportedFailure, waitMs: number | null, keptText: string): void {
    const now = this.#clock.now();
    this.#since ??= now;
    this.#failures++;
    if (now - (this.#toldAt.get(failure.kind) ?? -Infinity) < REPEAT_MS) return;
    this.#toldAt.set(failure.kind, now);
    this.#told = true;
    const again = this.#failures > 1 ? `, failure ${this.#failures}` : '';
    this.#log.warning(
      [
        `${this.#work}: ${failure.message}`,
        ...(failure.advice === '' ? [] : [failure.advice]),
        `trying again ${waitMs === null ? 'when needed' : `in ${roundedDuration(waitMs)}`}${again}`,
        keptText,
      ].join('; '),
    );
  }

  /** Call this on recovery. The recovery is reported if the failure was. */
  over(): void {
    if (this.#since !== null && this.#told) {
      const lasted = roundedDuration(this.#clock.now() - this.#since);
      this.#log.info(
        `${this.#work}: works again after ${lasted}, ${this.#failures} ${this.#failures === 1 ? 'failure' : 'failures'}`,
      );
    }
    this.#since = null;
    this.#failures = 0;
    // Report times are retained, so that an intermittent failure is not reported every time.
    this.#told = false;
  }
}

/** Rounds to tenths of a second if below ten seconds, and otherwise to whole seconds. */
export function roundedDuration(ms: number): string {
  return printDuration(ms < 10_000 ? Math.round(ms / 100) * 100 : Math.round(ms / 1000) * 1000);
}
