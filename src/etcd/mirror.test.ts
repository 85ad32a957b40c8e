import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeLog } from '../base/log.ts';
import { seededRandom } from '../base/random.ts';
import { VirtualClock } from '../base/virtual-clock.ts';
import { FakeEtcd } from '../../test/kit/fake-etcd.ts';
import { prefixRange } from './messages.ts';
import { Mirror } from './mirror.ts';

/** A mirror of a fake etcd, and what it knows. */
function mirror() {
  const etcd = new FakeEtcd();
  const clock = new VirtualClock();
  const known = new Map<string, string>();
  const lists: string[] = [];
  const log: string[] = [];
  let seen = new Set<string>();
  const it = new Mirror({
    client: etcd.client,
    ranges: [prefixRange(Buffer.from('/'))],
    target: {
      begin: () => void (seen = new Set()),
      listed(entries) {
        for (const { key, value } of entries) {
          seen.add(key.toString());
          known.set(key.toString(), value!.toString());
        }
      },
      complete() {
        for (const key of known.keys()) if (!seen.has(key)) known.delete(key);
      },
      changed(events) {
        for (const { deleted, kv } of events) {
          if (deleted) known.delete(kv.key.toString());
          else known.set(kv.key.toString(), kv.value.toString());
        }
      },
    },
    hooks: {
      listed: (why) => void lists.push(why),
      failed: () => undefined,
      following: () => undefined,
      reached: () => undefined,
    },
    clock,
    random: seededRandom(1),
    log: makeLog((line) => void log.push(line)),
  });
  const pass = (ms: number): Promise<void> =>
    clock.run(new Promise<void>((resolve) => void clock.after(ms, resolve)));
  return { etcd, clock, known, lists, log, it, pass, stop: () => clock.run(it.stop()) };
}

describe('a mirror of etcd', () => {
  test('lists once, then follows from the next revision on', async () => {
    const { etcd, known, lists, it, pass, stop } = mirror();
    etcd.pageMax = 2;
    for (const key of ['/a', '/b', '/c', '/d', '/e']) etcd.put(key, '1');
    it.start();
    await pass(10);
    assert.equal(known.size, 5);
    assert.deepEqual(etcd.watched, [7]);
    etcd.put('/a', '2');
    etcd.delete('/b');
    assert.deepEqual([known.get('/a'), known.has('/b')], ['2', false]);
    assert.deepEqual(lists, ['start']);
    await stop();
  });

  test('a watch that breaks goes on after the last event, and nothing is listed or taken away meanwhile', async () => {
    const { etcd, known, lists, it, pass, stop } = mirror();
    etcd.put('/a', '1');
    it.start();
    await pass(10);
    etcd.put('/b', '2');
    etcd.crash();
    await pass(60_000);
    assert.equal(known.size, 2);
    etcd.put('/c', '3');
    etcd.delete('/a');
    etcd.away = false;
    await pass(1300);
    assert.deepEqual(
      [...known],
      [
        ['/b', '2'],
        ['/c', '3'],
      ],
    );
    assert.equal(etcd.watched.at(-1), 4);
    assert.deepEqual(lists, ['start']);
    await stop();
  });

  test('waits between tries grow, and none is longer than 1.2 s: who is back is followed within 2 s', async () => {
    const { etcd, it, pass, stop } = mirror();
    etcd.away = true;
    it.start();
    await pass(60_000);
    const tries = etcd.ranges;
    await pass(60_000);
    const more = etcd.ranges - tries;
    assert.ok(more >= 50 && more <= 150, `${more} tries in a minute`);
    await stop();
  });

  test('history that is compacted meanwhile: all is listed again, and only what the list has not is taken away', async () => {
    const { etcd, known, lists, it, pass, stop } = mirror();
    etcd.put('/a', '1');
    etcd.put('/b', '1');
    it.start();
    await pass(10);
    etcd.crash();
    etcd.delete('/a');
    etcd.put('/c', '1');
    etcd.compacted = etcd.revision;
    etcd.away = false;
    await pass(5000);
    assert.deepEqual([...known.keys()], ['/b', '/c']);
    assert.deepEqual(lists, ['start', 'compacted']);
    await stop();
  });

  test('a list that breaks off takes nothing away', async () => {
    const { etcd, known, it, pass, stop } = mirror();
    etcd.pageMax = 1;
    for (const key of ['/a', '/b', '/c']) etcd.put(key, '1');
    it.start();
    await pass(10);
    etcd.crash();
    etcd.delete('/c');
    etcd.compacted = etcd.revision;
    etcd.breakAt = '/a\0';
    etcd.away = false;
    await pass(30_000);
    assert.deepEqual([...known.keys()], ['/a', '/b', '/c']);
    etcd.breakAt = '';
    await pass(2000);
    assert.deepEqual([...known.keys()], ['/a', '/b']);
    await stop();
  });

  test('a database that has gone back in time, or is another one, is listed again', async () => {
    for (const other of [false, true]) {
      const { etcd, known, lists, log, it, pass, stop } = mirror();
      for (const key of ['/a', '/b', '/c']) etcd.put(key, '1');
      it.start();
      await pass(10);
      etcd.crash();
      etcd.history.length = 1;
      if (other) {
        etcd.cluster = 8n;
        for (const key of ['/d', '/e', '/f', '/g']) etcd.put(key, '1');
      }
      etcd.away = false;
      await pass(5000);
      assert.deepEqual([...known.keys()], other ? ['/a', '/d', '/e', '/f', '/g'] : ['/a']);
      assert.deepEqual(lists, ['start', 'restored']);
      assert.match(log.join('\n'), other ? /another cluster/ : /restore from a backup/);
      await stop();
    }
  });

  test('what is wrong is told once a minute, and when it is over', async () => {
    const { etcd, log, it, pass, stop } = mirror();
    etcd.put('/a', '1');
    it.start();
    await pass(10);
    etcd.crash();
    await pass(110_000);
    etcd.away = false;
    await pass(2000);
    assert.equal(log.length, 3, log.join('\n'));
    assert.match(
      log[0]!,
      /following etcd: etcd:1: connection reset; trying again in .*; answers stay as they were/,
    );
    assert.match(log[2]!, /works again after 1m5\ds/);
    await stop();
  });
});
