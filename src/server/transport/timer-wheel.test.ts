import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { Clock } from '../base/clock.ts';
import { VirtualClock } from '../base/virtual-clock.ts';
import { Timed, TimerWheel } from './timer-wheel.ts';

class Alarm extends Timed {
  readonly fired: number[] = [];
  readonly #clock: VirtualClock;
  readonly #then: () => void;

  constructor(clock: VirtualClock, then: () => void = () => {}) {
    super();
    this.#clock = clock;
    this.#then = then;
  }

  override expire(): void {
    this.fired.push(this.#clock.now());
    this.#then();
  }
}

describe('timer wheel', () => {
  test('a deadline is met up to one tick late, never early', async () => {
    const clock = new VirtualClock();
    const wheel = new TimerWheel(clock, 20);
    await clock.advance(7);
    const delays = [0, 1, 19, 20, 21, 500, 5119, 5120, 5121, 12_345];
    const alarms = delays.map((delay) => {
      const alarm = new Alarm(clock);
      wheel.set(alarm, delay);
      return alarm;
    });
    await clock.advance(13_000);
    delays.forEach((delay, i) => {
      const [at = NaN, ...more] = alarms[i]!.fired;
      assert.equal(more.length, 0);
      assert.ok(at >= 7 + delay && at <= 7 + delay + 2 * 20, `${delay} ms fired at ${at - 7}`);
    });
  });

  test('a cancelled deadline does not fire, and a moved one fires once', async () => {
    const clock = new VirtualClock();
    const wheel = new TimerWheel(clock, 10);
    const cancelled = new Alarm(clock);
    const moved = new Alarm(clock);
    wheel.set(cancelled, 50);
    wheel.set(moved, 50);
    await clock.advance(30);
    wheel.cancel(cancelled);
    wheel.cancel(cancelled);
    wheel.set(moved, 100);
    await clock.advance(1000);
    assert.deepEqual(cancelled.fired, []);
    assert.equal(moved.fired.length, 1);
    assert.ok(moved.fired[0]! >= 130);
    assert.equal(wheel.size, 0);
  });

  test('expiring items may set and cancel others due at the same moment', async () => {
    const clock = new VirtualClock();
    const wheel = new TimerWheel(clock, 10);
    const victim = new Alarm(clock);
    const again: Alarm = new Alarm(clock, () => {
      if (again.fired.length < 3) wheel.set(again, 10);
    });
    const killer = new Alarm(clock, () => wheel.cancel(victim));
    wheel.set(killer, 15);
    wheel.set(victim, 15);
    wheel.set(again, 15);
    await clock.advance(1000);
    assert.deepEqual(victim.fired, []);
    assert.equal(again.fired.length, 3);
  });

  test('an empty wheel sets no timers', async () => {
    const clock = new VirtualClock();
    const wheel = new TimerWheel(clock, 10);
    assert.equal(clock.pending, 0);
    const alarm = new Alarm(clock);
    wheel.set(alarm, 25);
    assert.equal(clock.pending, 1);
    await clock.advance(100);
    assert.equal(clock.pending, 0);
    wheel.set(alarm, 5000);
    wheel.stop();
    assert.equal(clock.pending, 0);
  });

  test('after a long stop, everything due fires together, once the waiting input has been read', () => {
    const { clock, turn } = stopped();
    const wheel = new TimerWheel(clock, 10);
    const alarms = Array.from({ length: 200 }, () => new Count());
    alarms.forEach((alarm, i) => wheel.set(alarm, 97 * i));
    const asked = alarms[7]!;
    turn(1_000_000);
    assert.equal(total(alarms), 0);
    // The query had already arrived, and by now it has been read.
    wheel.set(asked, 10_000);
    turn(1_000_010);
    assert.equal(total(alarms), 199);
    assert.equal(asked.fired, 0);
  });

  test('a thread that is always late still meets deadlines', () => {
    const { clock, turn } = stopped();
    const wheel = new TimerWheel(clock, 10);
    const alarm = new Count();
    wheel.set(alarm, 100);
    wheel.set(new Count(), 100_000);
    turn(1000);
    turn(2000);
    assert.equal(alarm.fired, 1);
    const next = new Count();
    wheel.set(next, 100);
    turn(3000);
    turn(4000);
    assert.equal(next.fired, 1);
  });
});

class Count extends Timed {
  fired = 0;

  override expire(): void {
    this.fired++;
  }
}

const total = (alarms: readonly Count[]): number =>
  alarms.reduce((sum, { fired }) => sum + fired, 0);

/** A clock that reports when its last timer runs. */
function stopped(): { readonly clock: Clock; turn(at: number): void } {
  let now = 0;
  let run = (): void => {};
  const after: Clock['after'] = (_, then) => {
    run = then;
    return { cancel: () => {} };
  };
  return {
    clock: { now: () => now, wall: () => now, after },
    turn(at) {
      now = at;
      run();
    },
  };
}
