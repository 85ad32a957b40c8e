import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../../base/virtual-clock.ts';
import type { KubeObject } from '../../../kube/store/objects.ts';
import { Collection } from '../../../metrics/collection.ts';
import { SharedRegistry } from '../../../metrics/shared-registry.ts';
import type { DataSetParts } from '../../../engine/contract/data-set.ts';
import { StaticSource } from '../../../../../test/kit/replicated-cluster.ts';
import { namespace, service, slice } from '../../../../../test/kit/kube-objects.ts';
import type { ClusterFact, TriggerTimes } from '../contract/cluster-facts.ts';
import { ClusterPublisher } from './publisher.ts';

/**
 * A publisher whose data set is the test itself. Published facts are stored, and applied only when the test does so.
 */
function rig(objects: readonly KubeObject[] = []) {
  const clock = new VirtualClock();
  const collection = new Collection();
  const source = new StaticSource(objects);
  const published: ClusterFact[] = [];
  let waiting: (() => void)[] = [];
  let set: DataSetParts<ClusterFact, TriggerTimes> | null = null;
  const publisher = new ClusterPublisher({
    source,
    clock,
    metrics: new SharedRegistry((event) => collection.add('main', event)),
    clientNames: false,
    open: (parts) => {
      set = parts as unknown as DataSetParts<ClusterFact, TriggerTimes>;
      return {
        publish: (changes) => published.push(...(changes as Iterable<ClusterFact>)),
        whenApplied: (run) => waiting.push(run),
        close: () => undefined,
      };
    },
  });
  return {
    clock,
    source,
    publisher,
    published,
    collection,
    snapshot: () => [...set!.snapshot()],
    applied: (times: TriggerTimes) => set!.applied!(times),
    allApplied: () => {
      for (const run of waiting) run();
      waiting = [];
    },
  };
}

const about = (facts: readonly ClusterFact[]): string[] => facts.map((fact) => fact.kind);

test('waiting for the first listing ends with the configuration', async () => {
  const { publisher } = rig([namespace('a')]);
  let ready = false;
  publisher.whenSettled(() => {
    ready = true;
  });
  assert.equal(ready, false);
  await publisher.close();
  assert.equal(ready, true);
});

describe('facts about a cluster that workers receive', () => {
  test('consist of one fact per object and the time of the change', async () => {
    const { publisher, source, published, clock } = rig([namespace('a')]);
    publisher.start();
    assert.deepEqual(about(published), ['Time', 'Namespace']);
    source.put(service('web.a', '10.0.0.1'));
    assert.deepEqual(about(published.slice(2)), ['Service'], 'within the same second');
    await clock.advance(1000);
    source.remove(service('web.a', '10.0.0.1'));
    assert.deepEqual(about(published.slice(3)), ['Time', 'Gone']);
  });

  test('are a snapshot for new workers: the objects, the serials, and whether everything has been listed', () => {
    const { publisher, source, snapshot } = rig([
      namespace('a'),
      service('web.a', '10.0.0.1'),
      slice('web.a', ['10.1.0.1']),
    ]);
    assert.deepEqual(about(snapshot()), ['Time', 'Serials'], 'before the start nothing is known');
    publisher.start();
    const objects = ['Time', 'Namespace', 'Service', 'EndpointSlice', 'Serials'];
    assert.deepEqual(about(snapshot()), objects);
    source.complete();
    assert.deepEqual(about(snapshot()), [...objects, 'Listed']);
  });

  test('are complete when the source is and every worker has applied them', () => {
    const { publisher, source, published, allApplied } = rig([service('web.a', '10.0.0.1')]);
    publisher.start();
    allApplied();
    let synced = false;
    publisher.whenSettled(() => {
      synced = true;
    });
    source.complete();
    assert.equal(published.at(-1)?.kind, 'Listed');
    assert.deepEqual([synced, publisher.synced], [false, false]);
    allApplied();
    assert.deepEqual([synced, publisher.synced], [true, true]);
  });
});

describe('the programming latency', () => {
  test('is the time from an endpoint change until all workers use it', async () => {
    const { publisher, source, applied, clock, collection } = rig([service('web.a', '10.0.0.1')]);
    publisher.start();
    source.complete();
    const triggeredAt = clock.wall() - 1500;
    source.put(slice('web.a', ['10.1.0.1'], { triggeredAt }));
    await clock.advance(20);
    applied({ cluster: [triggeredAt], headless: [] });
    const text = collection.print('text');
    assert.match(text, /dns_programming_duration_seconds_sum\{service_kind="cluster_ip"\} 1\.52\b/);
    assert.match(text, /dns_programming_duration_seconds_count\{service_kind="cluster_ip"\} 1\b/);
  });

  test('does not include the initial listing', () => {
    const { publisher, published } = rig([slice('web.a', ['10.1.0.1'], { triggeredAt: 1000 })]);
    publisher.start();
    const fact = published.at(-1);
    assert.ok(fact?.kind === 'EndpointSlice');
    assert.equal(fact.triggeredAt, 0);
  });
});
