import type { Clock } from './clock.ts';
import { printDuration } from './duration.ts';
import type { Log } from './log.ts';

/** A failure as it is reported to a person. */
export interface ReportedFailure {
  /** One word; a failure of another kind is reported at once. */
  readonly kind: string;
  readonly message: string;
  /** The action; empty if only waiting helps. */
  readonly advice: string;
}

/** The least time between two reports of the same failure, in milliseconds. */
const REPEAT_MS = 60_000;

/**
 * Reports failures to a person: the first of each kind at once, then at most one line a minute per
 * kind, and the end of the failures.
 */
export class FailureReport {
  readonly #log: Log;
  readonly #clock: Clock;
  /** The work that fails, e.g. `list and watch of services`. */
  readonly #work: string;
  #since: number | null = null;
  #failures = 0;
  /** By kind: when it was last reported. */
  readonly #toldAt = new Map<string, number>();
  #told = false;

  constructor(parts: { log: Log; clock: Clock; work: string }) {
    this.#log = parts.log;
    this.#clock = parts.clock;
    this.#work = parts.work;
  }

  /**
   * @param keptText the state that is served until then, e.g. `answers use data from 2m ago`.
   */
  failed(failure: ReportedFailure, waitMs: number, keptText: string): void {
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
        `trying again in ${roundedDuration(waitMs)}${again}`,
        keptText,
      ].join('; '),
    );
  }

  /** Called when it works again; says so if the failure was reported. */
  over(): void {
    if (this.#since !== null && this.#told) {
      const lasted = roundedDuration(this.#clock.now() - this.#since);
      this.#log.info(
        `${this.#work}: works again after ${lasted}, ${this.#failures} ${this.#failures === 1 ? 'failure' : 'failures'}`,
      );
    }
    this.#since = null;
    this.#failures = 0;
    // The times of reports stay, so that an intermittent failure is not reported each time.
    this.#told = false;
  }
}

/** To a tenth of a second below ten seconds, else to a second. */
export function roundedDuration(ms: number): string {
  return printDuration(ms < 10_000 ? Math.round(ms / 100) * 100 : Math.round(ms / 1000) * 1000);
}
