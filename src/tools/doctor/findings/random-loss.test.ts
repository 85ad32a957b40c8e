import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

/** A and AAAA after each other from one socket; lost ones are answered 5 s later. */
async function first(isLost: (name: number, type: number) => boolean) {
  const packets = Array.from({ length: 120 }, (_, i) =>
    ['A', 'AAAA'].flatMap((type, t) => {
      const way = ends('10.244.1.5', 30_000 + i);
      const [atMs, name, id] = [i * 300 + t * 40, `n${i % 30}.example.com.`, 2 * i + t];
      return isLost(i, t)
        ? [
            ...asked(atMs, way, name, id, { type, tookMs: null }),
            ...asked(atMs + 5000, way, name, id, { type }),
          ]
        : asked(atMs, way, name, id, { type });
    }),
  );
  const { findings } = await examine(inOrder(packets));
  return findings[0];
}

const isTenth = (i: number): boolean => (i * 7919) % 101 < 10;

test('only AAAA is lost, and answered when it is repeated: it goes by the type', async () => {
  const found = await first((name, type) => type === 1 && isTenth(name));
  assert.equal(found?.code, 'ND3013');
  assert.match(found.title, /^AAAA queries, the second of each pair, are sometimes lost/);
  assert.doesNotMatch(found.seen.join(' '), /types, names/);
  assert.match(found.fix[0]!, /insert_failed/);
  assert.doesNotMatch(found.fix.join(' '), /dead pod/);
});

test('A and AAAA are lost alike', async () => {
  const found = await first((name, type) => isTenth(name + 40 * type));
  assert.equal(found?.code, 'ND3013');
  assert.match(found.title, /lost at random/);
});

/** Cluster names are answered; every fifth external name is lost. @param rcode of every fourth external one */
async function outside(rcode: number) {
  const packets = Array.from({ length: 240 }, (_, i) => {
    const way = ends('10.244.1.5', 30_000 + i);
    const isOutside = i % 4 === 0;
    const name = isOutside ? `n${i % 28}.example.com.` : `s${i % 9}.shop.svc.cluster.local.`;
    const reply = (i / 4) % 5 === 1 ? { tookMs: null } : (i / 4) % 4 === 3 ? { rcode } : {};
    return asked(i * 200, way, name, i, isOutside ? reply : {});
  });
  return (await examine(inOrder(packets))).findings;
}

test('losses of external names only depend on the name', async () => {
  const [found] = await outside(0);
  assert.equal(found?.code, 'ND3013');
  assert.match(found.title, /external names are lost, while cluster names are answered/);
  assert.doesNotMatch(found.seen.join(' '), /nothing in common/);
});

test('losses beside SERVFAIL, both of external names only, are one finding', async () => {
  const findings = await outside(2);
  const found = findings.find(({ code }) => code === 'ND4002');
  assert.match(found?.seen.join(' ') ?? '', /12 more queries for external names got no reply/);
  assert.ok(!findings.some(({ code }) => code === 'ND3013'));
});

test('losses that come in waves of seconds do not depend on chance, and are reported with their times', async () => {
  const packets = Array.from({ length: 80 }, (_, second) => {
    // Single losses between the waves show that the server does not stop.
    const isLost = second % 30 >= 15 || second % 30 === 12 || second === 6;
    const pair = ['A', 'AAAA'].map((type, at) =>
      asked(
        second * 1000 + at * 100,
        ends('10.244.1.5', 30_000 + 2 * second + at, '9.9.9.9'),
        `n${second % 7}.example.com.`,
        2 * second + at,
        isLost ? { type, tookMs: null } : { type },
      ),
    );
    return pair.flat();
  });
  const { findings } = await examine(inOrder(packets));
  const found = findings.find(({ code }) => code === 'ND3013');
  assert.match(found?.title ?? '', /lost in waves/);
  assert.match(found!.seen.join(' '), /lost in 2 waves: from .* \(30 queries\)/);
  assert.doesNotMatch(found!.title + found!.seen.join(' '), /regardless|nothing in common/);
});
