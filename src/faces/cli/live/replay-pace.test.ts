/** Tests the replay speed in virtual time. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../../server/base/virtual-clock.ts';
import { pacedChunks, ReplayPace } from './replay-pace.ts';

describe('a replay', () => {
  for (const [speed, ms] of [
    [1, 5000],
    [10, 500],
    [0.5, 10_000],
    [Infinity, 0],
  ] as const)
    test(`at ${speed} takes ${ms} ms for five seconds`, async () => {
      assert.equal(await lastingMs(new ReplayPaceAt(speed)), ms);
    });

  test('does not advance while it is paused', async () => {
    const at = new ReplayPaceAt(1);
    const reached = at.reach(5000);
    await at.clock.advance(2000);
    at.pace.pause(true);
    await at.clock.advance(60_000);
    assert.equal(reached.done, false);
    at.pace.pause(false);
    await at.clock.advance(2999);
    assert.equal(reached.done, false);
    await at.clock.advance(1);
    assert.equal(reached.done, true);
  });

  test('continues at another speed from its current position', async () => {
    const at = new ReplayPaceAt(1);
    const reached = at.reach(5000);
    await at.clock.advance(1000);
    at.pace.change(true);
    await at.clock.advance(1999);
    assert.equal(reached.done, false);
    await at.clock.advance(1);
    assert.equal(reached.done, true);
  });

  test('steps through the speeds, from one tenth to full speed', () => {
    const { pace } = new ReplayPaceAt(1);
    for (let i = 0; i < 20; i++) pace.change(true);
    assert.equal(pace.text, 'full speed');
    for (let i = 0; i < 20; i++) pace.change(false);
    assert.equal(pace.text, '0.1×');
  });

  test('stops waiting once it is stopped', async () => {
    const at = new ReplayPaceAt(1);
    const reached = at.reach(1e9);
    at.pace.stop();
    await at.clock.advance(0);
    assert.equal(reached.done, true);
  });

  test('yields all bytes in order, in pieces', async () => {
    const clock = new VirtualClock();
    const chunk = Uint8Array.from({ length: 5000 }, (_, at) => at % 251);
    const pieces: number[] = [];
    const given: number[] = [];
    const chunks = (async function* () {
      yield chunk;
    })();
    for await (const piece of pacedChunks(chunks, new ReplayPace(clock, 1), () => -Infinity)) {
      pieces.push(piece.length);
      given.push(...piece);
    }
    assert.deepEqual(given, [...chunk]);
    assert.ok(pieces.length > 4);
  });
});

/** A pace whose first packet is at time 0. */
class ReplayPaceAt {
  readonly clock = new VirtualClock();
  readonly pace: ReplayPace;

  constructor(speed: number) {
    this.pace = new ReplayPace(this.clock, speed);
    void this.pace.reach(0);
  }

  reach(ms: number): { done: boolean } {
    const state = { done: false };
    void this.pace.reach(ms).then(() => (state.done = true));
    return state;
  }
}

async function lastingMs(at: ReplayPaceAt): Promise<number> {
  const reached = at.reach(5000);
  for (let ms = 0; ; ms += 100) {
    await at.clock.advance(0);
    if (reached.done) return ms;
    await at.clock.advance(100);
  }
}
