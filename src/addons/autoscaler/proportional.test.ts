import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Problem } from '../../server/base/problem.ts';
import { readSizing } from './proportional.ts';

const replicas = (data: object, nodes: number, cores: number, schedulable = nodes): number =>
  readSizing(
    Object.fromEntries(
      Object.entries(data).map(([mode, params]) => [mode, JSON.stringify(params)]),
    ),
    'ConfigMap a/b',
  ).replicas({
    nodes,
    cores,
    schedulableNodes: schedulable,
    schedulableCores: (cores * schedulable) / Math.max(1, nodes),
  }).replicas;

describe('linear, as computed by cluster-proportional-autoscaler 1.9', () => {
  for (const [params, nodes, cores, wanted] of [
    [{ coresPerReplica: 2, nodesPerReplica: 1 }, 4, 13, 7],
    [{ coresPerReplica: 2, nodesPerReplica: 1, max: 5 }, 4, 13, 5],
    [{ coresPerReplica: 256, nodesPerReplica: 16 }, 120, 1920, 8],
    [{ coresPerReplica: 256, nodesPerReplica: 16 }, 1, 4, 1],
    [{ nodesPerReplica: 16, preventSinglePointFailure: true }, 2, 8, 2],
    [{ nodesPerReplica: 16, preventSinglePointFailure: true }, 1, 8, 1],
    // The second replica is added for safety, regardless of max.
    [{ nodesPerReplica: 16, preventSinglePointFailure: true, max: 1 }, 3, 8, 2],
    [{ coresPerReplica: 0.5 }, 1, 3, 6],
    [{ coresPerReplica: 4, min: 3 }, 0, 0, 3],
    [{ nodesPerReplica: 10, min: 0 }, 0, 0, 1],
  ] as const)
    test(`${JSON.stringify(params)} gives ${wanted} for ${nodes} nodes with ${cores} CPUs`, () =>
      assert.equal(replicas({ linear: params }, nodes, cores), wanted));

  test('nodes that are cordoned or not ready count only with includeUnschedulableNodes', () => {
    assert.equal(replicas({ linear: { nodesPerReplica: 1 } }, 10, 40, 6), 6);
    const all = { nodesPerReplica: 1, includeUnschedulableNodes: true };
    assert.equal(replicas({ linear: all }, 10, 40, 6), 10);
  });

  test('a larger cluster never gets fewer replicas', () =>
    fc.assert(
      fc.property(
        fc.nat(5000),
        fc.nat(5000),
        fc.integer({ min: 1, max: 64 }),
        (few, more, each) => {
          const of = (nodes: number): number =>
            replicas(
              { linear: { nodesPerReplica: each, coresPerReplica: 2 * each } },
              nodes,
              4 * nodes,
            );
          assert.ok(of(few) <= of(few + more));
        },
      ),
    ));
});

describe('ladder, as computed by cluster-proportional-autoscaler 1.9', () => {
  const params = {
    coresToReplicas: [
      [64, 3],
      [1, 1],
      [512, 5],
    ],
    nodesToReplicas: [
      [1, 1],
      [2, 2],
    ],
  };
  for (const [nodes, cores, wanted] of [
    [1, 1, 1],
    [2, 63, 2],
    [2, 64, 3],
    [100, 511, 3],
    [100, 100_000, 5],
    [0, 0, 1],
  ] as const)
    test(`${nodes} nodes with ${cores} CPUs are on the rung of ${wanted}`, () =>
      assert.equal(replicas({ ladder: params }, nodes, cores), wanted));

  test('a ladder may go down to zero', () =>
    assert.equal(replicas({ ladder: { nodesToReplicas: [[0, 0]] } }, 7, 7), 0));
});

test('more replicas than the API allows are a problem and are not sent to the API server', () => {
  for (const nodesPerReplica of [1e-10, 5e-324])
    assert.throws(() => replicas({ linear: { nodesPerReplica } }, 3, 12), /asks for .* replicas/);
  assert.equal(replicas({ linear: { nodesPerReplica: 5e-324, max: 7 } }, 3, 12), 7);
});

describe('an invalid ConfigMap', () => {
  for (const [data, wanted] of [
    [{}, /has nothing, but must have either linear or ladder/],
    [{ linear: '{}', ladder: '{}' }, /has linear, ladder, but must have either/],
    [{ cubic: '{}' }, /has cubic/],
    [{ linear: '{' }, /has invalid JSON in/],
    [{ linear: '[]' }, /no JSON object/],
    [{ linear: '{}' }, /neither coresPerReplica nor nodesPerReplica/],
    [{ linear: '{"nodesPerReplica": "16"}' }, /"16" in nodesPerReplica, which is not a number/],
    [{ linear: '{"nodesPerReplica": -1}' }, /-1 in nodesPerReplica, which is less than 0/],
    [{ linear: '{"nodesPerReplica": 1, "min": 4, "max": 2}' }, /max 2, which is less than min 4/],
    [
      { ladder: '{"nodesToReplicas": [[1]]}' },
      /\[1\] in nodesToReplicas, but must have \[from, replicas\]/,
    ],
    [{ ladder: '{"nodesToReplicas": {}}' }, /no list of pairs/],
    [{ ladder: '{"nodeToReplicas": [[1, 2]]}' }, /neither coresToReplicas nor nodesToReplicas/],
    [{ ladder: '{"nodesToReplicas": [], "coresToReplicas": null}' }, /neither/],
    [
      { ladder: '{"nodesToReplicas": [[0, 2.5]]}' },
      /2\.5 in nodesToReplicas, which is not a whole number/,
    ],
    [{ ladder: '{"nodesToReplicas": [[0, 1e999]]}' }, /not a whole number/],
    [
      { ladder: '{"nodesToReplicas": [[0, 3000000000]]}' },
      /3000000000 in nodesToReplicas, which is more than/,
    ],
    [{ linear: '{"nodesPerReplica": 1, "min": 2.5}' }, /2\.5 in min, which is not a whole number/],
    [{ linear: '{"nodesPerReplica": 1, "min": 1e999}' }, /Infinity in min, which is not a whole/],
    [
      { linear: '{"nodesPerReplica": 1e999}' },
      /Infinity in nodesPerReplica, which is not a number/,
    ],
  ] as const)
    test(`${JSON.stringify(data)} is a problem that names it`, () =>
      assert.throws(
        () => readSizing(data, 'ConfigMap a/b'),
        (error) =>
          error instanceof Problem &&
          wanted.test(error.message) &&
          /ConfigMap a\/b/.test(error.message),
      ));
});
