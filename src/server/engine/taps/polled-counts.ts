/** Metrics of a tap's outlet, which counts in plain numbers: brought up to date each second and at the end. */
import { every } from '../../base/clock.ts';
import type { ControlContext } from '../contract/control-context.ts';

/** The period in which the metrics are brought up to date, milliseconds. */
const COUNT_MS = 1000;

/** A counter, and the number that it follows. */
export interface PolledCounter {
  readonly counter: { add(amount: number): void };
  /** A number that only grows. */
  readonly count: () => number;
}

/**
 * Follows the numbers until the configuration ends.
 * @param look called each time
 * @param end called after the last time
 */
export function pollCounts(
  context: Pick<ControlContext, 'clock' | 'onStop'>,
  counters: readonly PolledCounter[],
  look: () => void,
  end: () => void = () => undefined,
): void {
  const polled = counters.map((each) => ({ ...each, before: each.count() }));
  const update = (): void => {
    for (const each of polled) {
      const now = each.count();
      each.counter.add(now - each.before);
      each.before = now;
    }
    look();
  };
  const ticks = every(context.clock, COUNT_MS, update);
  context.onStop(() => {
    ticks.cancel();
    update();
    end();
  });
}
