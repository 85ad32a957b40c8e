import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { QuerySource } from './per-query.ts';

/** A worker's end of `per_query` whose reads have not been answered yet. */
function source(waitingMax = 4096) {
  const asked: { id: number; from: number }[] = [];
  let deliver = (_message: unknown): void => undefined;
  const channel = {
    onMessage: (handler: (message: unknown) => void) => void (deliver = handler),
    post: (message: unknown) => void asked.push(message as { id: number; from: number }),
  };
  const failures = { amount: 0, add: (amount: number) => void (failures.amount += amount) };
  const made = new QuerySource(channel, new VirtualClock(), { from: 7, waitingMax, failures });
  return { made, asked, failures, deliver: (message: unknown) => deliver(message) };
}

describe('etcd, read for each query', () => {
  test('read values arrive, and replies to other workers are ignored', async () => {
    const { made, asked, deliver } = source();
    const records = made.open();
    assert.equal(records.below('/local'), null);
    const waited = records.wait()!;
    const { id } = asked[0]!;
    const reply = { id, keys: ['/local/a'], values: ['x'], leases: [], failure: null };
    deliver({ ...reply, from: 8, values: ['of somebody else'] });
    deliver({ ...reply, from: 7 });
    await waited;
    const stretch = { keys: ['/local/a'], values: ['x'], from: 0, to: 1 };
    assert.deepEqual(records.below('/local'), stretch);
    assert.equal(records.wait(), null);
  });

  test('a reload does not leave queries waiting for a reply that cannot arrive', async () => {
    const { made, failures } = source();
    const records = made.open();
    records.at('/local');
    const waited = records.wait()!;
    made.stop();
    await assert.rejects(waited, /configuration ended/);
    const late = made.open();
    late.at('/local');
    await assert.rejects(late.wait()!, /configuration ended/);
    assert.equal(failures.amount, 1);
  });

  test('reads beyond max_waiting fail at once and are counted', async () => {
    const { made, asked, failures } = source(2);
    for (const path of ['/a', '/b']) made.open().below(path);
    const third = made.open();
    third.below('/c');
    await assert.rejects(third.wait()!, /too many reads wait for etcd \(max_waiting\)/);
    assert.deepEqual([asked.length, failures.amount], [2, 1]);
  });

  test('a read that fails after its query has ended has no effect', async () => {
    const { made, asked, deliver } = source();
    made.open().below('/local');
    const { id } = asked[0]!;
    deliver({ id, from: 7, keys: [], values: [], leases: [], failure: 'etcd is away' });
    // An unhandled rejection would fail this test.
    await new Promise((resolve) => setImmediate(resolve));
  });
});
