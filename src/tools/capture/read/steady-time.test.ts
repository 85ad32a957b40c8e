import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SteadyTime } from './steady-time.ts';

const YEAR_MS = 365 * 24 * 3600 * 1000;
const now = 56 * YEAR_MS;

function given(...times: readonly number[]): { passed: number[]; dropped: number[] } {
  const passed: number[] = [];
  const dropped: number[] = [];
  const item = { timeMs: 0 };
  const steady = new SteadyTime<{ timeMs: number }>(
    ({ timeMs }) => passed.push(timeMs),
    (each) => ({ ...each }),
    ({ timeMs }) => dropped.push(timeMs),
  );
  for (item.timeMs of times) steady.take(item);
  steady.end();
  return { passed, dropped };
}

describe('the time of a capture', () => {
  it('continues after a packet of another year', () => {
    const times = [now, now + 1, now + 10 * YEAR_MS, now + 2, 0, now + 3];
    assert.deepEqual(given(...times), {
      passed: [now, now + 1, now + 2, now + 3],
      dropped: [now + 10 * YEAR_MS, 0],
    });
  });

  it('is not that of a first packet that no other agrees with', () => {
    assert.deepEqual(given(0, now, now + 1), { passed: [now, now + 1], dropped: [0] });
  });

  it('continues with an appended capture of another year', () => {
    const times = [now, now + 1, now - YEAR_MS, now - YEAR_MS + 1];
    assert.deepEqual(given(...times), { passed: times, dropped: [] });
  });

  it('is that of the only packet, and not of a last one that is years off', () => {
    assert.deepEqual(given(now), { passed: [now], dropped: [] });
    assert.deepEqual(given(now, now + 1, now + YEAR_MS), {
      passed: [now, now + 1],
      dropped: [now + YEAR_MS],
    });
  });

  it('of one input does not affect the next, which may be a single packet of another year', () => {
    const passed: number[] = [];
    const steady = new SteadyTime<{ timeMs: number }>(
      ({ timeMs }) => passed.push(timeMs),
      (each) => each,
      () => {},
    );
    for (const input of [[now, now + 1], [now + YEAR_MS]]) {
      for (const timeMs of input) steady.take({ timeMs });
      steady.end();
    }
    assert.deepEqual(passed, [now, now + 1, now + YEAR_MS]);
  });

  it('is that of the last packet if all are years apart', () => {
    assert.deepEqual(given(now, now + YEAR_MS, now + 2 * YEAR_MS).passed, [now + 2 * YEAR_MS]);
  });
});
