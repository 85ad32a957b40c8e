import { sleep, type Clock } from '../../base/clock.ts';

/** Bounds a person may set on what is asked of the server; 0 = none. */
export interface RequestLimits {
  readonly perSecond: number;
  /** How many may go at once after a pause; at least 1 where `perSecond` is set. */
  readonly burst: number;
  /** Lists under way at the same time; watches do not count. */
  readonly inFlight: number;
}

/** Holds requests back that exceed the limits. Each that has entered must leave. */
export interface RequestGate {
  /** Waits until a request may go; how long that took, milliseconds. */
  enter(watch: boolean, signal: AbortSignal): Promise<number>;
  leave(watch: boolean): void;
}

/** A token bucket for the rate, a queue for the number in flight. */
export function requestGate(clock: Clock, limits: RequestLimits): RequestGate {
  const waiting: (() => void)[] = [];
  let inFlight = 0;
  /** When the next request may go if the bucket is empty: it fills by moving away from the past. */
  let nextAt = -Infinity;
  const slotMs = limits.perSecond > 0 ? 1000 / limits.perSecond : 0;
  const depthMs = slotMs * (Math.max(1, limits.burst) - 1);
  return {
    async enter(watch, signal) {
      const came = clock.now();
      if (slotMs > 0) {
        nextAt = Math.max(nextAt + slotMs, came - depthMs);
        const waitMs = nextAt - came;
        if (waitMs > 0) await sleep(clock, waitMs, signal);
      }
      if (!watch && limits.inFlight > 0 && inFlight >= limits.inFlight) {
        await new Promise<void>((resolve) => waiting.push(resolve));
      } else if (!watch) {
        inFlight++;
      }
      return clock.now() - came;
    },
    leave(watch) {
      if (watch) return;
      // The place goes straight to whoever waits longest.
      const next = waiting.shift();
      if (next === undefined) inFlight--;
      else next();
    },
  };
}
