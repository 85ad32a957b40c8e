import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Shares, type Share } from './shares.ts';

const step = fc.record({
  client: fc.constantFrom('noisy', 'a', 'b', 'c', 'd'),
  leaves: fc.boolean(),
  pick: fc.nat(),
});

/** `noisy` and what begins with an a or a b are neighbours. */
const networkOf = (client: string): string => (/^[abn]/.test(client) ? 'near' : client);

function admits(shares: Shares, client: string, network = networkOf(client)): boolean {
  return shares.judge(client, network) === 'admitted';
}

test('the room is never exceeded by more than the spare places; whoever is alone may have all of it', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 8, max: 200 }),
      fc.array(step, { maxLength: 600 }),
      (room, steps) => {
        const shares = new Shares(room);
        const waiting: Share[] = [];
        for (const { client, leaves, pick } of steps) {
          if (leaves && waiting.length > 0)
            shares.leave(waiting.splice(pick % waiting.length, 1)[0]!);
          else if (admits(shares, client)) waiting.push(shares.enter(client, networkOf(client)));
          else assert.ok(shares.waiting >= shares.room, 'refused though there was room');
          assert.equal(shares.waiting, waiting.length);
          assert.equal(shares.clients, new Set(waiting.map((each) => each.client)).size);
          assert.ok(shares.waiting <= shares.room + shares.room / 8 + 1);
        }
        for (const share of waiting) shares.leave(share);
        assert.deepEqual([shares.waiting, shares.clients], [0, 0]);
        while (admits(shares, 'alone')) shares.enter('alone', 'alone');
        assert.equal(shares.waiting, shares.room);
        assert.ok(shares.room >= room && shares.room < room + 8);
        assert.ok(admits(shares, 'newcomer'));
      },
    ),
  );
});

test('however much more one client asks, after a while all that want everything have the same', () => {
  for (const others of [1, 2, 5, 20]) {
    const shares = new Shares(1000);
    const queue: Share[] = [];
    const has = new Map<string, number>();
    const ask = (client: string): void => {
      if (!admits(shares, client, client)) return;
      queue.push(shares.enter(client, client));
      has.set(client, (has.get(client) ?? 0) + 1);
    };
    for (let i = 0; i < 20_000; i++) {
      // Each reply frees a place; the noisy one asks a hundred times as often as any other.
      if (queue.length >= shares.room) {
        const share = queue.shift()!;
        shares.leave(share);
        has.set(share.client, has.get(share.client)! - 1);
      }
      for (let n = 0; n < 200; n++) ask('noisy');
      for (let n = 0; n < 2 * others; n++) ask(`client-${n % others}`);
    }
    const counts = [...has.values()];
    assert.equal(counts.length, others + 1);
    assert.ok(
      Math.max(...counts) <= 1.1 * Math.min(...counts) + 10,
      `${others}: ${counts.join(' ')}`,
    );
  }
});

test('a network of any number of clients leaves places to others, who get as much as it in the end', () => {
  fc.assert(
    fc.property(fc.integer({ min: 8, max: 2000 }), fc.nat(), (room, start) => {
      const shares = new Shares(room);
      for (let i = 0; i < 3 * room; i++)
        if (admits(shares, `invented-${start + i}`, 'hostile'))
          shares.enter(`invented-${start + i}`, 'hostile');
      assert.ok(shares.waiting >= shares.room);
      assert.equal(shares.judge('invented', 'hostile'), 'network');
      assert.equal(shares.judge('quiet', 'calm'), 'admitted');
      shares.enter('quiet', 'calm');
      // A namespace cannot be claimed by whoever likes to.
      if (room >= 64) assert.equal(shares.judge('namespace/quiet', ''), 'admitted');
    }),
  );
});

test('one client that has all places leaves some to its neighbours', () => {
  const shares = new Shares(1000);
  while (admits(shares, 'hog', 'net')) shares.enter('hog', 'net');
  for (let i = 0; i < 50; i++) {
    assert.equal(shares.judge(`neighbour-${i}`, 'net'), 'admitted');
    shares.enter(`neighbour-${i}`, 'net');
  }
});
