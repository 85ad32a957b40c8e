import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { modelStory } from './play.ts';
import { predictLoss, rehearsal, type RolloutTimes } from './rehearsal.ts';
import { isAsTold } from './story.ts';

/** Every port is new and the probe fails immediately, so only new connections are lost. */
const times: RolloutTimes = {
  pods: 2,
  unavailable: 0,
  rate: 200,
  ports: 8000,
  randomPorts: false,
  warmMs: 1000,
  readyMs: 1000,
  unreadyMs: 0,
  propagationMs: 1500,
  lameduckMs: 0,
  conntrackMs: 30_000,
  entriesStay: false,
};

/** Ports are reused after a second, so each has a connection when the rollout begins. */
const again: RolloutTimes = { ...times, ports: 200, lameduckMs: 5000, unreadyMs: 30_000 };

describe('the loss of a rollout', () => {
  test('is the share of a terminated pod until the nodes have new rules', () => {
    const { lost, inTheDark } = predictLoss(times);
    assert.equal(inTheDark, 200);
    assert.ok(lost > 180 && lost < 220, String(lost));
  });

  test('is nothing for new ports when lameduck is longer than the propagation', () => {
    assert.equal(predictLoss({ ...times, lameduckMs: 1500 }).lost, 0);
    assert.equal(predictLoss({ ...again, ports: 8000 }).lost, 0);
  });

  test('shrinks by the part that lameduck covers', () => {
    const { lost } = predictLoss({ ...times, lameduckMs: 750 });
    assert.ok(lost > 85 && lost < 115, String(lost));
  });

  test('affects reused ports while a terminating pod still serves', () => {
    const { lost, keptMs, because } = predictLoss(again);
    assert.equal(keptMs, 2500);
    assert.ok(lost > 400, String(lost));
    assert.match(because, /stops serving 6 s after SIGTERM/);
  });

  test('is nothing if readiness fails, and the nodes know it, within lameduck', () => {
    assert.equal(predictLoss({ ...again, unreadyMs: 3000 }).lost, 0);
    assert.ok(predictLoss({ ...again, unreadyMs: 4000 }).lost > 0);
  });

  test('is greater if a pod ends before a new one is ready', () => {
    const surge = predictLoss(again).lost;
    const without = predictLoss({ ...again, unavailable: 1, readyMs: 10_000 }).lost;
    assert.ok(without > surge * 1.1, `${without}, ${surge}`);
  });

  test('continues for ports that are reused before the kernel forgets them, with any lameduck', () => {
    const kept = { ...times, lameduckMs: 5000, ports: 50, entriesStay: true };
    for (const lameduckMs of [0, 750, 5000])
      assert.ok(predictLoss({ ...kept, lameduckMs }).lost > 200, `lameduck ${lameduckMs} ms`);
    assert.equal(predictLoss({ ...kept, entriesStay: false }).lost, 0);
    // Each port is reused after 1.25 s but forgotten after one.
    assert.equal(predictLoss({ ...kept, ports: 250, conntrackMs: 1000 }).lost, 0);
  });
});

/**
 * Rollouts in a one-node Kubernetes 1.36.3 cluster (kube-proxy with iptables and nftables). One pod sent 300 queries a
 * second, of which a tenth were over TCP, starting two seconds before the rollout. For CoreDNS, the streams for
 * restarting and changing back immediately followed another stream.
 */
const measured: readonly (readonly [
  title: string,
  differs: Partial<RolloutTimes>,
  lost: readonly number[],
])[] = [
  ['CoreDNS restarted', { readyMs: 1000, warmMs: 20_000 }, [97, 39]],
  ['CoreDNS changed to ndots', {}, [32, 21, 29]],
  ['ndots restarted', {}, [71, 49, 55]],
  ['a rollout whose pods are ready within 2 s', { readyMs: 2000 }, [7, 30, 11, 16]],
  ['ndots changed back to CoreDNS', { warmMs: 12_000, readyMs: 1000 }, [48]],
  [
    'ports that were all used in the minute before',
    { randomPorts: false, ports: 7600, warmMs: 28_200 },
    [178, 268],
  ],
];
const kubeadm: RolloutTimes = {
  pods: 2,
  unavailable: 1,
  rate: 270,
  ports: 28_232,
  randomPorts: true,
  warmMs: 2000,
  readyMs: 10_000,
  unreadyMs: 30_000,
  // A single node with an idle kube-proxy, which writes rules immediately.
  propagationMs: 500,
  lameduckMs: 5000,
  conntrackMs: 30_000,
  entriesStay: false,
};

describe('measured rollouts of a real cluster', () => {
  for (const [title, differs, lost] of measured)
    test(`${title}: ${lost.join(', ')} lost, and the model is within a factor of two of their mean`, () => {
      const mean = lost.reduce((sum, each) => sum + each, 0) / lost.length;
      const predicted = predictLoss({ ...kubeadm, ...differs }).lost;
      assert.ok(predicted > mean / 2 && predicted < mean * 2, `${predicted}, measured ${mean}`);
    });

  for (const [title, differs] of [
    ['ports that were not used before', { randomPorts: false, ports: 50_000 }],
    [
      'readiness 5 s × 1 and lameduck 10 s',
      { unavailable: 0, unreadyMs: 5000, lameduckMs: 10_000 },
    ],
    ['readiness 2 s × 1 and lameduck 5 s', { unreadyMs: 2000 }],
  ] as const)
    test(`: none lost, also in the model${title}: 0 lost, also in the model`, () => {
      assert.equal(predictLoss({ ...kubeadm, ...differs }).lost, 0);
    });
});

describe('the rehearsal', () => {
  const kinds = async (given: RolloutTimes): Promise<readonly string[]> => {
    const outcome = await modelStory(rehearsal(given));
    assert.ok(isAsTold(outcome!));
    return outcome!.acts.map(({ kind, title }) => `${kind}: ${title}`);
  };

  test('shows the fault without lameduck, and the fix with it', async () => {
    assert.deepEqual(await kinds({ ...times, lameduckMs: 2000 }), [
      'flaw: without lameduck',
      'cure: lameduck 2 s, unready 0 s after SIGTERM',
    ]);
  });

  test('adds a probe that fails within lameduck if lameduck alone is not enough', async () => {
    assert.deepEqual(await kinds({ ...again, propagationMs: 1000 }), [
      'flaw: without lameduck',
      'flaw: lameduck 5 s, unready 30 s after SIGTERM',
      'cure: lameduck 5 s, unready 2 s after SIGTERM',
    ]);
  });

  test('covers any number of pods, long propagation and ports that are reused soon', async () => {
    for (const pods of [1, 2, 3, 4])
      for (const unavailable of [0, 1] as const)
        for (const randomPorts of [false, true])
          for (const [rate, propagationMs] of [
            [500, 3000],
            [800, 5000],
          ] as const) {
            const busy = { pods, unavailable, randomPorts, rate, propagationMs, ports: 2000 };
            await kinds({ ...times, ...busy, lameduckMs: 2000, unreadyMs: 30_000 });
          }
  });
});
