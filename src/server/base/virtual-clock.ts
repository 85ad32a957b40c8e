/** A clock whose time passes only on request: for tests, and for modelled lookups. */
import type { Clock, Timer } from './clock.ts';

interface Alarm {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

/**
 * A clock that advances only by `advance` or `run`. Alarms fire in the order of their times, then
 * in the order in which they were set. Between two alarms pending promises settle, so that the code
 * under test runs in the same order as with the real clock.
 */
export class VirtualClock implements Clock {
  #nowMs = 0;
  #order = 0;
  #alarms: Alarm[] = [];
  #wallStart: number;

  /** @param wallStart the initial value of `wall()`, milliseconds since 1970 */
  constructor(wallStart: number = Date.UTC(2026, 0, 1)) {
    this.#wallStart = wallStart;
  }

  now(): number {
    return this.#nowMs;
  }

  wall(): number {
    return this.#wallStart + this.#nowMs;
  }

  after(delayMs: number, run: () => void): Timer {
    const alarm: Alarm = {
      at: this.#nowMs + Math.max(0, delayMs),
      order: this.#order++,
      run,
      cancelled: false,
    };
    this.#alarms.push(alarm);
    return {
      cancel: () => {
        alarm.cancelled = true;
      },
    };
  }

  /** Changes `wall()` as if the machine's clock had been set; `now()` is not affected. */
  setWall(byMs: number): void {
    this.#wallStart += byMs;
  }

  /** The number of alarms that are set. */
  get pending(): number {
    return this.#alarms.filter((alarm) => !alarm.cancelled).length;
  }

  /** Lets `durationMs` pass: fires alarms when they are due and lets promises settle in between. */
  async advance(durationMs: number): Promise<void> {
    const end = this.#nowMs + durationMs;
    await settle();
    for (;;) {
      const alarm = this.#next(end);
      if (alarm === null) break;
      this.#nowMs = Math.max(this.#nowMs, alarm.at);
      alarm.run();
      await settle();
    }
    this.#nowMs = end;
  }

  /** Lets time pass until `promise` settles, at most `limitMs`. */
  async run<T>(promise: Promise<T>, limitMs: number = 24 * 3600 * 1000): Promise<T> {
    let settled = false;
    const mark = (): void => {
      settled = true;
    };
    promise.then(mark, mark);
    const end = this.#nowMs + limitMs;
    await settle();
    while (!settled) {
      const alarm = this.#next(end);
      if (alarm === null) throw new Error(`still waiting after ${limitMs} ms of virtual time`);
      this.#nowMs = Math.max(this.#nowMs, alarm.at);
      alarm.run();
      await settle();
    }
    return promise;
  }

  #next(end: number): Alarm | null {
    this.#alarms = this.#alarms.filter((alarm) => !alarm.cancelled);
    let first: Alarm | null = null;
    for (const alarm of this.#alarms) {
      if (alarm.at > end) continue;
      if (
        first === null ||
        alarm.at < first.at ||
        (alarm.at === first.at && alarm.order < first.order)
      )
        first = alarm;
    }
    if (first !== null) this.#alarms.splice(this.#alarms.indexOf(first), 1);
    return first;
  }
}

/** Waits until chains of promises that can resolve without time passing have done so. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
