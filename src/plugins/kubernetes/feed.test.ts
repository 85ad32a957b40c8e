import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { KubeObject } from '../../kube/store/objects.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { Collection } from '../../metrics/collection.ts';
import { SharedRegistry } from '../../metrics/shared-registry.ts';
import { manyObjects, StaticSource } from '../../../test/kit/fed-cluster.ts';
import { namespace, service, slice } from '../../../test/kit/kube-objects.ts';
import type { Ack, FeedMessage } from './facts.ts';
import { Feed } from './feed.ts';

/** A feed whose workers are the test: messages are kept, answers are given by hand. */
function rig(objects: readonly KubeObject[] = []) {
  const clock = new VirtualClock();
  const collection = new Collection();
  const source = new StaticSource(objects);
  const sent: FeedMessage[] = [];
  let state: (() => Iterable<unknown>) | null = null;
  let handler: ((message: unknown, worker: number) => void) | null = null;
  const feed = new Feed({
    source,
    clock,
    metrics: new SharedRegistry((event) => collection.add('main', event)),
    podNames: false,
    clientNames: false,
    channel: {
      publish: (message) => sent.push(message as FeedMessage),
      onJoin: (make) => {
        state = make;
      },
      onMessage: (take) => {
        handler = take;
      },
    },
  });
  const facts = (): Extract<FeedMessage, { kind: 'facts' }>[] =>
    sent.filter((message) => message.kind === 'facts');
  return {
    clock,
    source,
    feed,
    sent,
    facts,
    collection,
    join: () => [...(state!() as Iterable<FeedMessage>)],
    ack: (worker: number, more: Partial<Ack> = {}) =>
      handler!({ seq: facts().at(-1)?.seq ?? 0, cluster: [], headless: [], ...more }, worker),
  };
}

describe('a feed', () => {
  test('cuts a large listing into messages of bounded size', () => {
    const { feed, facts } = rig([...manyObjects(1000, 20, false)]);
    feed.start();
    const sizes = facts().map((message) => message.facts.length);
    assert.equal(
      sizes.reduce((sum, size) => sum + size, 0),
      2050,
    );
    assert.ok(sizes.length > 10);
    assert.ok(Math.max(...sizes) <= 150);
  });

  test('sends the next message only when every worker has taken in the last one', () => {
    const { feed, source, facts, join, ack } = rig();
    feed.start();
    join();
    ack(0, { seq: 0 });
    ack(1, { seq: 0 });
    source.put(...manyObjects(300, 1, false));
    assert.equal(facts().length, 1);
    ack(0);
    assert.equal(facts().length, 1);
    ack(1);
    assert.equal(facts().length, 2);
  });

  test('waits only so long for a worker that does not answer, and again once it does', async () => {
    const { feed, source, facts, ack, clock } = rig();
    feed.start();
    ack(0, { seq: 0 });
    ack(1, { seq: 0 });
    source.put(...manyObjects(600, 1, false));
    ack(0);
    assert.equal(facts().length, 1);
    await clock.advance(50);
    assert.equal(facts().length, 2);
    ack(0);
    assert.equal(facts().length, 3, 'the silent one is not waited for');
    ack(1);
    ack(0);
    assert.equal(facts().length, 4);
    ack(0);
    assert.equal(facts().length, 4, 'it answers again, so it is waited for again');
  });

  test('tells a newcomer the whole state, then the serials, then that it is synced', () => {
    const { feed, source, join } = rig([
      namespace('a'),
      service('web.a', '10.0.0.1'),
      slice('web.a', ['10.1.0.1']),
    ]);
    feed.start();
    assert.deepEqual(
      join().map(({ kind }) => kind),
      ['facts', 'serials'],
    );
    source.complete();
    const state = join();
    assert.deepEqual(
      state.map(({ kind }) => kind),
      ['facts', 'serials', 'synced'],
    );
    const [first] = state;
    assert.ok(first?.kind === 'facts');
    assert.deepEqual(
      first.facts.map(({ about }) => about),
      ['namespace', 'service', 'slice'],
    );
  });

  test('is synced when the source is and everything listed has gone out', () => {
    const { feed, source, sent, ack, facts } = rig([...manyObjects(200, 1, false)]);
    ack(0, { seq: 0 });
    feed.start();
    source.complete();
    let synced = false;
    feed.whenSynced(() => {
      synced = true;
    });
    assert.equal(synced, false);
    for (let last = -1; last !== facts().length;) {
      last = facts().length;
      ack(0);
    }
    assert.equal(synced, true);
    assert.equal(sent.at(-1)?.kind, 'synced');
  });

  test('measures how long a change of endpoints took to be answered by all workers', async () => {
    const { feed, source, ack, clock, collection } = rig([
      namespace('a'),
      service('web.a', '10.0.0.1'),
    ]);
    feed.start();
    source.complete();
    ack(0);
    const triggeredAt = clock.wall() - 1500;
    source.put(slice('web.a', ['10.1.0.1'], { triggeredAt }));
    await clock.advance(20);
    ack(0, { cluster: [triggeredAt] });
    const text = collection.print('text');
    assert.match(text, /dns_programming_duration_seconds_sum\{service_kind="cluster_ip"\} 1\.52\b/);
    assert.match(text, /dns_programming_duration_seconds_count\{service_kind="cluster_ip"\} 1\b/);
  });

  test('does not measure what was listed at first', () => {
    const { feed, facts } = rig([slice('web.a', ['10.1.0.1'], { triggeredAt: 1000 })]);
    feed.start();
    const [fact] = facts()[0]!.facts;
    assert.ok(fact?.about === 'slice');
    assert.equal(fact.triggeredAt, 0);
  });
});
