import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { modelStory } from './play.ts';
import { predictLoss, rehearsal, type RolloutTimes } from './rehearsal.ts';
import { isAsTold } from './story.ts';

const times: RolloutTimes = {
  pods: 2,
  rate: 200,
  ports: 4000,
  readyMs: 1000,
  propagationMs: 1500,
  lameduckMs: 0,
  conntrackMs: 30_000,
  entriesStay: false,
};

describe('the loss of a rollout', () => {
  test('is the share of a pod that has ended until the nodes know', () => {
    const { lost, inTheDark } = predictLoss(times);
    assert.equal(inTheDark, 200);
    assert.ok(lost > 180 && lost < 220, String(lost));
  });

  test('is nothing when lameduck is longer than the propagation', () => {
    assert.equal(predictLoss({ ...times, lameduckMs: 1500 }).lost, 0);
  });

  test('shrinks by as much as lameduck covers', () => {
    const { lost } = predictLoss({ ...times, lameduckMs: 750 });
    assert.ok(lost > 85 && lost < 115, String(lost));
  });

  test('goes on for ports that come again before the kernel forgets them, whatever lameduck is', () => {
    const kept = { ...times, lameduckMs: 5000, ports: 50, entriesStay: true };
    for (const lameduckMs of [0, 750, 5000])
      assert.ok(predictLoss({ ...kept, lameduckMs }).lost > 200, `lameduck ${lameduckMs} ms`);
    assert.equal(predictLoss({ ...kept, entriesStay: false }).lost, 0);
    // Each comes again after 1.25 s, and is forgotten after one.
    assert.equal(predictLoss({ ...kept, ports: 250, conntrackMs: 1000 }).lost, 0);
  });

  test('the model without lameduck is a flaw, and with it a cure', async () => {
    const outcome = await modelStory(rehearsal({ ...times, lameduckMs: 2000 }));
    assert.deepEqual(
      outcome!.acts.map(({ kind }) => kind),
      ['flaw', 'cure'],
    );
    assert.ok(isAsTold(outcome!));
  });

  test('the model holds for pods of any number, long propagations and ports that come again soon', async () => {
    for (const pods of [1, 2, 3, 4])
      for (const [rate, propagationMs] of [
        [500, 3000],
        [800, 5000],
      ] as const) {
        const busy = { pods, rate, propagationMs, ports: 2000, lameduckMs: 2000 };
        assert.ok(isAsTold((await modelStory(rehearsal({ ...times, ...busy })))!), `${pods} pods`);
      }
  });
});
