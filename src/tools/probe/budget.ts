/** Sliding windows of good and bad events, the error budget, and its burn rate. */

/** The number of slots in a window, of which the oldest is dropped as time advances. */
const PARTS = 60;

/** Counts good and bad events in a sliding window, using constant memory with a resolution of 1/60. */
export class SlidingWindow {
  readonly lengthMs: number;
  readonly #good = new Uint32Array(PARTS);
  readonly #bad = new Uint32Array(PARTS);
  #part = 0;
  #goodSum = 0;
  #badSum = 0;

  constructor(lengthMs: number) {
    this.lengthMs = lengthMs;
  }

  /** @param now milliseconds of a monotonic clock */
  add(now: number, isGood: boolean): void {
    this.#forget(now);
    const at = this.#part % PARTS;
    if (isGood) {
      this.#good[at]!++;
      this.#goodSum++;
    } else {
      this.#bad[at]!++;
      this.#badSum++;
    }
  }

  bad(now: number): number {
    this.#forget(now);
    return this.#badSum;
  }

  total(now: number): number {
    this.#forget(now);
    return this.#goodSum + this.#badSum;
  }

  #forget(now: number): void {
    const part = Math.floor((now * PARTS) / this.lengthMs);
    const gone = Math.min(PARTS, part - this.#part);
    for (let step = 1; step <= gone; step++) {
      const at = (this.#part + step) % PARTS;
      this.#goodSum -= this.#good[at]!;
      this.#badSum -= this.#bad[at]!;
      this.#good[at] = 0;
      this.#bad[at] = 0;
    }
    this.#part = Math.max(this.#part, part);
  }
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * A burn-rate alert, which fires when the budget is burning this fast in both windows. The short window clears the
 * alert soon after the failures stop.
 */
export interface BurnAlert {
  readonly name: string;
  /** A multiple of the rate that would use up the budget in exactly 30 days. */
  readonly factor: number;
  readonly longMs: number;
  readonly shortMs: number;
}

/** The four usual pairs from the Site Reliability Workbook, of which the first two page someone. */
export const burnAlerts: readonly BurnAlert[] = [
  { name: 'fast', factor: 14.4, longMs: HOUR, shortMs: 5 * MINUTE },
  { name: 'medium', factor: 6, longMs: 6 * HOUR, shortMs: 30 * MINUTE },
  { name: 'slow', factor: 3, longMs: DAY, shortMs: 2 * HOUR },
  { name: 'trickle', factor: 1, longMs: 3 * DAY, shortMs: 6 * HOUR },
];

/** The budget period. */
const BUDGET_MS = 30 * DAY;

/** Counts a target's good and bad rounds for each window length used in alerts. Takes about 4 KiB. */
export class ErrorBudget {
  readonly #allowed: number;
  readonly #everyMs: number;
  readonly #windows: ReadonlyMap<number, SlidingWindow>;

  /**
   * @param objective the fraction of rounds that should be good
   * @param everyMs time between rounds; rounds that a window has not seen yet count as good
   */
  constructor(objective: number, everyMs: number) {
    this.#allowed = 1 - objective;
    this.#everyMs = everyMs;
    const lengths = burnAlerts.flatMap(({ longMs, shortMs }) => [longMs, shortMs]);
    this.#windows = new Map(
      [...lengths, BUDGET_MS].map((length) => [length, new SlidingWindow(length)]),
    );
  }

  add(now: number, isGood: boolean): void {
    for (const window of this.#windows.values()) window.add(now, isGood);
  }

  /** The burn rate over the last `lengthMs` milliseconds, where 1 is the allowed rate. */
  burnRate(now: number, lengthMs: number): number {
    const window = this.#windows.get(lengthMs);
    if (window === undefined) return 0;
    const rounds = Math.max(window.total(now), lengthMs / this.#everyMs);
    return window.bad(now) / rounds / this.#allowed;
  }

  /** The fraction of the 30-day budget that remains, or a negative number if it has been overspent. */
  left(now: number): number {
    return 1 - this.burnRate(now, BUDGET_MS);
  }

  /** The active alert with the highest burn rate, or null if no alert is active. */
  alert(now: number): BurnAlert | null {
    return (
      burnAlerts.find(
        ({ factor, longMs, shortMs }) =>
          this.burnRate(now, longMs) >= factor && this.burnRate(now, shortMs) >= factor,
      ) ?? null
    );
  }
}
