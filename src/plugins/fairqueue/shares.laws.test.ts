import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Shares, type Share } from './shares.ts';

const step = fc.record({
  client: fc.constantFrom('noisy', 'a', 'b', 'c', 'd'),
  leaves: fc.boolean(),
  pick: fc.nat(),
});

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
          else if (shares.admits(client)) waiting.push(shares.enter(client));
          else assert.ok(shares.waiting >= shares.room, 'refused though there was room');
          assert.equal(shares.waiting, waiting.length);
          assert.equal(shares.clients, new Set(waiting.map((each) => each.client)).size);
          assert.ok(shares.waiting <= shares.room + shares.room / 8);
        }
        for (const share of waiting) shares.leave(share);
        assert.deepEqual([shares.waiting, shares.clients], [0, 0]);
        while (shares.admits('alone')) shares.enter('alone');
        assert.equal(shares.waiting, shares.room);
        assert.ok(shares.room >= room && shares.room < room + 8);
        assert.ok(shares.admits('newcomer'));
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
      if (!shares.admits(client)) return;
      queue.push(shares.enter(client));
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
