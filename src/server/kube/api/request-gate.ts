import { sleep, type Clock } from '../../base/clock.ts';

/** Configurable limits on requests to the server. 0 means no limit. */
export interface RequestLimits {
  readonly perSecond: number;
  /** Number of requests that may be sent at once after a pause. At least 1 if `perSecond` is set. */
  readonly burst: number;
  /** Number of concurrent lists; watches do not count. */
  readonly inFlight: number;
}

/** Delays requests that exceed the limits. Every call to `enter` must be followed by a call to `leave`. */
export interface RequestGate {
  /**
   * Waits until the request may be sent.
   * @returns the time spent waiting, in milliseconds
   */
  enter(watch: boolean, signal: AbortSignal): Promise<number>;
  leave(watch: boolean): void;
}

/** Creates a token bucket for the rate, and a queue for requests in flight. */
export function requestGate(clock: Clock, limits: RequestLimits): RequestGate {
  const waiting: (() => void)[] = [];
  let inFlight = 0;
  /** Time of the next request if the bucket is empty. The bucket fills as this moment recedes into the past. */
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
      // Pass the slot directly to the request that has been waiting longest.
      const next = waiting.shift();
      if (next === undefined) inFlight--;
      else next();
    },
  };
}
