/** Sliding windows of good and bad events, the error budget, and its burn rate. */

/** The number of parts of a window; the oldest is dropped as time continues. */
const PARTS = 60;

/**
 * Counts good and bad events in a sliding window, with constant memory and a resolution of 1/60.
 */
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

  /** The number of bad events. */
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
 * An alert: the budget is used up at this speed in both windows. The short one ends the alert soon
 * after the failures end.
 */
export interface BurnAlert {
  readonly name: string;
  /** Multiple of the speed that would use up the budget in exactly 30 days. */
  readonly factor: number;
  readonly longMs: number;
  readonly shortMs: number;
}

/** The four usual pairs of the Site Reliability Workbook; the first two page a person. */
export const burnAlerts: readonly BurnAlert[] = [
  { name: 'fast', factor: 14.4, longMs: HOUR, shortMs: 5 * MINUTE },
  { name: 'medium', factor: 6, longMs: 6 * HOUR, shortMs: 30 * MINUTE },
  { name: 'slow', factor: 3, longMs: DAY, shortMs: 2 * HOUR },
  { name: 'trickle', factor: 1, longMs: 3 * DAY, shortMs: 6 * HOUR },
];

/** The period of the budget. */
const BUDGET_MS = 30 * DAY;

/** Good and bad rounds of one target, in windows of all lengths that alerts need; about 4 KiB. */
export class ErrorBudget {
  readonly #allowed: number;
  readonly #everyMs: number;
  readonly #windows: ReadonlyMap<number, SlidingWindow>;

  /**
   * @param objective the share of rounds that should be good
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

  /** The burn rate of the budget over the last `lengthMs` milliseconds; 1 is the allowed rate. */
  burnRate(now: number, lengthMs: number): number {
    const window = this.#windows.get(lengthMs);
    if (window === undefined) return 0;
    const rounds = Math.max(window.total(now), lengthMs / this.#everyMs);
    return window.bad(now) / rounds / this.#allowed;
  }

  /** The remaining share of the 30 days' budget; negative: exceeded. */
  left(now: number): number {
    return 1 - this.burnRate(now, BUDGET_MS);
  }

  /** The active alert with the highest burn rate; null if none is active. */
  alert(now: number): BurnAlert | null {
    return (
      burnAlerts.find(
        ({ factor, longMs, shortMs }) =>
          this.burnRate(now, longMs) >= factor && this.burnRate(now, shortMs) >= factor,
      ) ?? null
    );
  }
}
