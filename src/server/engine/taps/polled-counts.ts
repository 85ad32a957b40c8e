/** Metrics for a tap's outlet, which counts in plain numbers. They are updated every second and at the end. */
import { every } from '../../base/clock.ts';
import type { ControlContext } from '../contract/control-context.ts';

/** Milliseconds between updates of the metrics. */
const COUNT_MS = 1000;

/** A counter, and the number that it follows. */
export interface PolledCounter {
  readonly counter: { add(amount: number): void };
  /** Returns a number that only increases. */
  readonly count: () => number;
}

/**
 * Follows the numbers until the configuration ends.
 * @param look called on each update
 * @param end called after the last one
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
