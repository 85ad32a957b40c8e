/** Time as a parameter. Everything that waits takes a `Clock`, so that tests and scenarios can run in virtual time. */
export interface Clock {
  /** Monotonic milliseconds, with a fractional part. */
  now(): number;
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  wall(): number;
  /** Runs `run` once after `delayMs`. Timers never keep the process alive. */
  after(delayMs: number, run: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}

/** Read once, because the global is a getter. */
const { performance } = globalThis;

/** The longest timer that the runtime supports, 24.8 days in milliseconds. Longer ones fire immediately. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(delayMs, run) {
    if (delayMs > LONGEST_TIMER_MS) return afterMonths(delayMs, run);
    const handle = setTimeout(run, delayMs);
    handle.unref();
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Chains timers to cover delays beyond the runtime's limit. */
function afterMonths(delayMs: number, run: () => void): Timer {
  let timer = systemClock.after(LONGEST_TIMER_MS, () => {
    timer = systemClock.after(delayMs - LONGEST_TIMER_MS, run);
  });
  return { cancel: () => timer.cancel() };
}

/** Runs `run` every `periodMs`, starting after one period, until it is cancelled or throws. */
export function every(clock: Clock, periodMs: number, run: () => void): Timer {
  let timer: Timer;
  let cancelled = false;
  const again = (): void => {
    timer = clock.after(periodMs, () => {
      run();
      if (!cancelled) again();
    });
  };
  again();
  return {
    cancel() {
      cancelled = true;
      timer.cancel();
    },
  };
}

/** Waits for `delayMs`. Aborting the signal ends the wait early, but the promise still resolves. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const stop = (): void => {
      timer.cancel();
      resolve();
    };
    const timer = clock.after(delayMs, () => {
      signal?.removeEventListener('abort', stop);
      resolve();
    });
    signal?.addEventListener('abort', stop, { once: true });
  });
}
