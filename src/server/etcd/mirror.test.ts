import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeLog } from '../base/log.ts';
import { seededRandom } from '../base/random.ts';
import { VirtualClock } from '../base/virtual-clock.ts';
import { FakeEtcd } from '../../../test/kit/fake-etcd.ts';
import { prefixRange } from './messages.ts';
import { Mirror } from './mirror.ts';

/** Creates a mirror of a fake etcd and records what it contains. */
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

describe('an etcd mirror', () => {
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

  test('a broken watch resumes after the last event, without listing or removing anything', async () => {
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

  test('delays between retries grow to at most 1.2 s: a server that comes back is followed within 2 s', async () => {
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

  test('compacted history: everything is listed again, and only keys missing from the list are removed', async () => {
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

  test('an incomplete list removes nothing', async () => {
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

  test('a database that has gone back in time, or is a different one, is listed again', async () => {
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
      assert.match(log.join('\n'), other ? /different cluster/ : /restore from a backup/);
      await stop();
    }
  });

  test('a failure is logged once a minute, and when it ends', async () => {
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
      /following etcd: etcd:1: connection reset; trying again in .*; answers use data from/,
    );
    assert.match(log[2]!, /works again after 1m5\ds/);
    await stop();
  });

  test('a list that is not ascending, or continues with an empty page, is dropped because it would never end', async () => {
    const pages = {
      'out of order': ['/b', '/a'],
      'the same key again': ['/a', '/a'],
      'before the first key that was asked for': ['!'],
      'an empty page': [],
    };
    for (const [what, keys] of Object.entries(pages)) {
      const { etcd, known, log, it, pass, stop } = mirror();
      etcd.put('/kept', '1');
      it.start();
      await pass(10);
      etcd.crash();
      etcd.put('/more', '1');
      etcd.compacted = etcd.revision;
      etcd.away = false;
      const kvs = keys.map((key) => ({
        ...{ key: Buffer.from(key), value: Buffer.from('1'), modRevision: 1, lease: 0n },
      }));
      const header = { cluster: etcd.cluster, revision: 9 };
      let asked = 0;
      etcd.client.range = () => (
        asked++,
        Promise.resolve({ header, kvs, more: true, bytes: Buffer.alloc(0) })
      );
      await pass(60_000);
      assert.ok(known.has('/kept'), what);
      assert.ok(asked < 200, `${what}: ${asked} pages`);
      assert.match(
        log.join('\n'),
        /(an etcd list is not in key order|etcd announced more keys but sent an empty page)/,
      );
      await stop();
    }
  });

  test('if history is compacted again and again, lists become less frequent and are reported once a minute', async () => {
    const { etcd, lists, log, it, pass, stop } = mirror();
    etcd.put('/a', '1');
    etcd.compacted = Number.MAX_SAFE_INTEGER;
    it.start();
    await pass(300_000);
    assert.ok(lists.length > 8 && lists.length < 40, `${lists.length} lists in five minutes`);
    const told = log.filter((line) => line.includes('listing everything again'));
    assert.ok(told.length > 2 && told.length < 7, log.join('\n'));
    assert.match(told.at(-1)!, /as \d+ times since the last such line/);
    etcd.compacted = 0;
    await pass(45_000);
    etcd.crash();
    etcd.away = false;
    await pass(1300);
    await pass(10_000);
    etcd.crash();
    etcd.put('/b', '1');
    etcd.compacted = etcd.revision;
    etcd.away = false;
    const before = lists.length;
    await pass(2000);
    assert.ok(lists.length > before, 'after a good watch the first list is made at once again');
    await stop();
  });

  test('an event with a known revision changes nothing', async () => {
    const { etcd, known, it, pass, stop } = mirror();
    etcd.put('/a', '1');
    etcd.put('/a', '2');
    it.start();
    await pass(10);
    etcd.sendAgain(2);
    assert.equal(known.get('/a'), '2');
    await stop();
  });

  test("etcd's reason for ending a watch is logged as one short line", async () => {
    const { etcd, log, it, pass, stop } = mirror();
    it.start();
    await pass(10);
    etcd.cancel(`no\n[ERROR] forged\u001b[2J${'y'.repeat(100_000)}`);
    await pass(10);
    assert.equal(log.length, 1);
    assert.ok(log[0]!.length < 600, `${log[0]!.length} characters`);
    assert.match(log[0]!, /canceled the watch: no \[ERROR\] forged\\u001b/);
    await stop();
  });

  for (let seed = 1; seed <= 60; seed++)
    test(`an etcd that fails at random (seed ${seed}): the keys become its keys, and the others never vanish`, async () => {
      const random = seededRandom(seed);
      const { etcd, known, it, pass, stop } = mirror();
      etcd.pageMax = 1 + random.integer(4);
      etcd.put('/always', '1');
      let isListed = false;
      it.start();
      for (let step = 0; step < 60; step++) {
        const key = `/${random.integer(8)}`;
        const fault = random.integer(14);
        if (fault < 5) etcd.put(key, String(step));
        else if (fault < 7) etcd.delete(key);
        else if (fault === 7) etcd.crash();
        else if (fault === 8) etcd.away = false;
        else if (fault === 9) etcd.compacted = etcd.revision;
        else if (fault === 10) etcd.breakAt = random.integer(2) === 0 ? key : '';
        else if (fault === 11) etcd.cancel('etcdserver: no leader');
        else if (fault === 12 && etcd.revision > 2)
          etcd.sendAgain(2 + random.integer(etcd.revision - 2));
        else if (fault === 13) {
          // A restored backup is a new cluster, and uses revisions again.
          etcd.crash();
          etcd.cluster++;
          etcd.history.length = Math.max(1, etcd.history.length - random.integer(5));
          etcd.compacted = 0;
        }
        await pass([0, 1, 50, 1000, 20_000][random.integer(5)]!);
        isListed ||= known.size > 0;
        if (isListed) assert.ok(known.has('/always'), `step ${step}`);
      }
      etcd.away = false;
      etcd.breakAt = '';
      await pass(60_000);
      etcd.pageMax = Infinity;
      const { kvs } = await etcd.client.range(prefixRange(Buffer.from('/')));
      const right = new Map(kvs.map(({ key, value }) => [key.toString(), value.toString()]));
      assert.deepEqual(Object.fromEntries(known), Object.fromEntries(right));
      await stop();
    });
});
