/** Limits notifications from primaries. */
import type { Clock, Timer } from '../../base/clock.ts';

/**
 * Delay in milliseconds between one notification and the next. It doubles each time up to the limit, and is reset once
 * no more notifications arrive.
 */
const WAIT_MS = { first: 100, most: 1000 };
/**
 * Number of zones that can be checked at once; after that, it is one per interval. Otherwise, an attacker who knows a
 * thousand zones could cause thousands of serial queries per second.
 */
const BURST = 1000;
const LOOK_MS = 5;
/** Maximum number of log lines about dropped notifications per zone and minute. */
const DROPPED_LINES = 10;
const MINUTE_MS = 60_000;

export interface NotifyGateParts {
  readonly clock: Clock;
  readonly pass: (zone: string, from: string) => void;
  readonly log: (line: string) => void;
}

interface Zone {
  timer: Timer | null;
  /** Delay in milliseconds for notifications after the next one. */
  waitMs: number;
  /** The primary that has sent a NOTIFY since the zone was last checked, or null. */
  again: string | null;
  lines: number;
  unlogged: number;
}

/**
 * Lets the first notification through at once, and combines those that follow soon afterwards. The limit is one per
 * second for a single zone, and a few hundred for many zones. The source of datagrams is easily forged, so even a
 * hundred thousand notifications per second must cause only one check and one line. Only served zones are tracked, so
 * the map cannot grow.
 */
export class NotifyGate {
  readonly #parts: NotifyGateParts;
  readonly #zones = new Map<string, Zone>();
  readonly #timers = new Set<Timer>();
  #takenUntil = -Infinity;

  constructor(parts: NotifyGateParts) {
    this.#parts = parts;
  }

  notified(zone: string, from: string): void {
    const one = this.#of(zone);
    if (one.timer !== null) {
      one.again = from;
      return;
    }
    const now = this.#parts.clock.now();
    this.#takenUntil = Math.max(this.#takenUntil, now - BURST * LOOK_MS) + LOOK_MS;
    const pause = this.#takenUntil - now;
    if (pause <= 0) return this.#pass(zone, one, from);
    one.again = from;
    one.timer = this.#after(pause, () => this.#pass(zone, one, one.again!));
  }

  #pass(zone: string, one: Zone, from: string): void {
    one.again = null;
    this.#parts.pass(zone, from);
    one.timer = this.#after(one.waitMs, () => {
      one.timer = null;
      const { again } = one;
      one.again = null;
      one.waitMs = again === null ? WAIT_MS.first : Math.min(2 * one.waitMs, WAIT_MS.most);
      if (again !== null) this.notified(zone, again);
    });
  }

  /** Handles a NOTIFY from a server that is not a primary. */
  dropped(zone: string, from: string): void {
    const { log } = this.#parts;
    const one = this.#of(zone);
    if (one.lines >= DROPPED_LINES) {
      one.unlogged++;
      return;
    }
    log(`Dropping notify from ${from} for ${zone}`);
    if (one.lines++ > 0) return;
    this.#after(MINUTE_MS, () => {
      if (one.unlogged > 0) log(`Dropping notify for ${zone}: ${one.unlogged} more`);
      one.lines = 0;
      one.unlogged = 0;
    });
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel();
  }

  #of(zone: string): Zone {
    let one = this.#zones.get(zone);
    if (one === undefined)
      this.#zones.set(
        zone,
        (one = { timer: null, waitMs: WAIT_MS.first, again: null, lines: 0, unlogged: 0 }),
      );
    return one;
  }

  #after(ms: number, run: () => void): Timer {
    const timer = this.#parts.clock.after(ms, () => {
      this.#timers.delete(timer);
      run();
    });
    this.#timers.add(timer);
    return timer;
  }
}
