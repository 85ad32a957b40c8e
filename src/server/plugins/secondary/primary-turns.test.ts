import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { PrimaryTurns } from './primary-turns.ts';

const one = { host: '192.0.2.1', port: 53 };
const other = { host: '192.0.2.2', port: 53 };

function makeTurns(): {
  readonly clock: VirtualClock;
  readonly turns: PrimaryTurns;
  readonly waiting: () => number;
} {
  const clock = new VirtualClock();
  let waiting = 0;
  const gauge = { set: () => undefined, add: (amount: number) => void (waiting += amount) };
  return { clock, turns: new PrimaryTurns(clock, 2, gauge), waiting: () => waiting };
}

describe('turns at a primary', () => {
  test('tasks run up to the limit, in order of arrival', async () => {
    const { clock, turns, waiting } = makeTurns();
    const begun: number[] = [];
    let running = 0;
    let most = 0;
    const all = Array.from({ length: 7 }, (_, index) =>
      turns.run(one, async () => {
        begun.push(index);
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => clock.after(100, resolve));
        running--;
      }),
    );
    await clock.advance(1);
    assert.deepEqual(begun, [0, 1]);
    assert.equal(waiting(), 5);
    await clock.advance(1000);
    await Promise.all(all);
    assert.deepEqual(begun, [0, 1, 2, 3, 4, 5, 6]);
    assert.equal(most, 2);
    assert.equal(waiting(), 0);
  });

  test('each primary has its own', async () => {
    const { turns } = makeTurns();
    for (let i = 0; i < 2; i++) void turns.run(one, () => new Promise(() => undefined));
    assert.equal(await turns.run(other, async () => 7), 7);
  });

  test('a zone that waited for a silent primary skips it at first, and queries it again later', async () => {
    const { clock, turns } = makeTurns();
    const silent = (): Promise<never> =>
      new Promise((_, reject) => clock.after(10_000, () => reject(new Error('silent'))));
    const outcomes: string[] = [];
    for (let i = 0; i < 5; i++)
      turns.run(one, silent).catch((error: Error) => outcomes.push(error.message));
    await clock.advance(10_001);
    const quick = '192.0.2.1:53 is not contacted for 5 s: silent';
    assert.deepEqual(outcomes.toSorted(), [quick, quick, quick, 'silent', 'silent']);
    await clock.advance(5000);
    assert.equal(await turns.run(one, async () => 'there'), 'there');
  });

  test('a task that fails at once does not count against the primary', async () => {
    const { turns } = makeTurns();
    await assert.rejects(turns.run(one, () => Promise.reject(new Error('refused'))));
    assert.equal(await turns.run(one, async () => 'there'), 'there');
  });
});
