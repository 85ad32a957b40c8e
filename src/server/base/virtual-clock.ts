/** A clock that advances only on request, used for tests and modelled lookups. */
import type { Clock, Timer } from './clock.ts';

/** Number of event loop turns, about a second, that wait for real input and output while no timer is set. */
const IDLE_TURNS_MAX = 200_000;

interface Alarm {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

/**
 * A clock that advances only through `advance` or `run`. Timers fire in the order in which they are due, and then in
 * the order in which they were set. Pending promises settle between two timers, so that code runs in the same order as
 * with the real clock.
 */
export class VirtualClock implements Clock {
  #nowMs = 0;
  #order = 0;
  #alarms: Alarm[] = [];
  #wallStart: number;

  /** @param wallStart initial value of `wall()`, milliseconds since 1970 */
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

  /** Shifts `wall()` as if the system clock had been set. `now()` is not affected. */
  setWall(byMs: number): void {
    this.#wallStart += byMs;
  }

  get pending(): number {
    return this.#alarms.filter((alarm) => !alarm.cancelled).length;
  }

  /** Advances by `durationMs`, firing timers when they are due and letting promises settle in between. */
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

  /** Advances until `promise` settles, at most by `limitMs`. */
  async run<T>(promise: Promise<T>, limitMs: number = 24 * 3600 * 1000): Promise<T> {
    let settled = false;
    const mark = (): void => {
      settled = true;
    };
    promise.then(mark, mark);
    const end = this.#nowMs + limitMs;
    let idleTurns = 0;
    await settle();
    while (!settled) {
      const alarm = this.#next(end);
      if (alarm === null) {
        // Files and sockets take real time.
        if (idleTurns++ === IDLE_TURNS_MAX)
          throw new Error(`still waiting after ${limitMs} ms of virtual time`);
        await settle();
        continue;
      }
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

/** Waits for promise chains that can resolve without any time passing. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
