import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import type { ThreadState } from '../../runtime/thread-state.ts';
import { beat, makePulse, showBuilding, showLoaded } from '../contract/pulse.ts';
import { Watchdog, type WatchedWorker } from './watchdog.ts';

/** A worker whose pulse uses its own clock, so that it can stop while the watchdog's clock continues. */
interface Fake extends WatchedWorker {
  readonly own: VirtualClock;
}

function fake(loaded = true): Fake {
  const own = new VirtualClock();
  const pulse = makePulse();
  beat(pulse, own);
  if (loaded) showLoaded(pulse);
  return { own, pulse };
}

/** A thread for which the system reports this share of CPU time. */
function thread(clock: VirtualClock, share: number, runnable = true): () => ThreadState {
  return () => ({ cpuMs: clock.now() * share, runnable, waits: 0 });
}

async function watched(
  stateOf: (clock: VirtualClock) => (thread: number) => ThreadState | null,
  worker: Fake = fake(),
): Promise<{ clock: VirtualClock; worker: Fake; hung: Fake[] }> {
  const clock = new VirtualClock();
  const hung: Fake[] = [];
  const dog = new Watchdog<Fake>({
    clock,
    hangMs: 2000,
    onHang: (worker) => hung.push(worker),
    stateOf: stateOf(clock),
  });
  dog.watch(worker);
  for (let i = 0; i < 100; i++) {
    await worker.own.advance(50);
    await clock.advance(50);
  }
  return { clock, worker, hung };
}

describe('watchdog', () => {
  test('a running worker is left alone', async () => {
    const { hung } = await watched((clock) => thread(clock, 1));
    assert.deepEqual(hung, []);
  });

  for (const [what, stateOf] of [
    ['in a loop', (clock: VirtualClock) => thread(clock, 1)],
    ['in the kernel', (clock: VirtualClock) => thread(clock, 0, false)],
    ['where the system tells nothing of threads', () => () => null],
  ] as const) {
    test(`one without progress for 2 s hangs, and is reported once (${what})`, async () => {
      const { clock, hung, worker } = await watched(stateOf);
      await clock.advance(1300);
      assert.deepEqual(hung, []);
      await clock.advance(700);
      assert.deepEqual(hung, [worker]);
      await clock.advance(60_000);
      assert.deepEqual(hung, [worker]);
      assert.equal(clock.pending, 0);
    });
  }

  test('one that gets no CPU time is waited for', async () => {
    const { clock, hung, worker } = await watched((now) => thread(now, 0.1));
    await clock.advance(4000);
    assert.deepEqual(hung, []);
    // Until it has had enough.
    await clock.advance(3000);
    assert.deepEqual(hung, [worker]);
  });

  test('one that sometimes waits for other threads, which may lack CPU time too, gets ten times as long', async () => {
    const { clock, hung, worker } = await watched((now) => () => ({
      cpuMs: now.now() * 0.02,
      runnable: false,
      waits: Math.floor(now.now()),
    }));
    await clock.advance(10_000);
    assert.deepEqual(hung, []);
    await clock.advance(10_000);
    assert.deepEqual(hung, [worker]);
  });

  test('one that begins to wait after it was found without progress still hangs', async () => {
    const { clock, hung, worker } = await watched((now) => () => ({
      cpuMs: 0,
      runnable: now.now() < 5700,
      waits: 1,
    }));
    await clock.advance(1500);
    assert.deepEqual(hung, []);
    await clock.advance(1000);
    assert.deepEqual(hung, [worker]);
  });

  test('time in which the watchdog itself did not run does not count', async () => {
    const clock = new VirtualClock();
    const hung: Fake[] = [];
    const dog = new Watchdog<Fake>({
      // A machine that is suspended for minutes between two checks.
      clock: {
        now: () => clock.now() * 1000,
        wall: () => 0,
        after: (delayMs, run) => clock.after(delayMs, run),
      },
      hangMs: 2000,
      onHang: (worker) => hung.push(worker),
      stateOf: () => null,
    });
    dog.watch(fake());
    await clock.advance(800);
    assert.deepEqual(hung, []);
  });

  test('one that builds a configuration gets ten times as long', async () => {
    const { clock, hung, worker } = await watched((now) => thread(now, 1));
    showBuilding(worker.pulse!, true);
    await clock.advance(18_000);
    assert.deepEqual(hung, []);
    await clock.advance(2000);
    assert.deepEqual(hung, [worker]);
  });

  test('so does one that is still loading its program, even from a slow disk', async () => {
    const loading = fake(false);
    const { clock, hung } = await watched((now) => thread(now, 0, false), loading);
    await clock.advance(18_000);
    assert.deepEqual(hung, []);
    await clock.advance(2000);
    assert.deepEqual(hung, [loading]);
  });
});
