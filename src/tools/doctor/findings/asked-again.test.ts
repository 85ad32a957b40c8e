import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';

/** A program repeats both queries of a pair after 5 s. @param tookMs what the reply for AAAA takes */
async function repeated(tookMs: number): Promise<boolean> {
  const pairs = Array.from({ length: 12 }, (_, i) => {
    const [atMs, port, name] = [i * 30_000, 30_000 + i, `n${i % 3}.shop.svc.cluster.local.`];
    const way = ends('10.244.1.7', port, '169.254.20.10');
    const other = { type: 'AAAA', tookMs } as const;
    return [0, 5000].flatMap((afterMs) => [
      ...asked(atMs + afterMs, way, name, 100 + i, { tookMs: 0.3 }),
      ...asked(atMs + afterMs + 0.1, way, name, 900 + i, other),
    ]);
  });
  const healthy = Array.from({ length: 60 }, (_, i) =>
    asked(i * 5000 + 700, ends('10.244.1.8', 40_000 + i), 'db.shop.svc.cluster.local.', 50 + i),
  );
  const { findings } = await examine(inOrder([...pairs, ...healthy]));
  return findings.some(({ code }) => code === 'ND3021');
}

test('a client that waits for the other reply of a pair repeats both queries', async () => {
  assert.equal(await repeated(0.4), true);
  assert.equal(await repeated(19_000), false);
});

/** A program sends pairs, and repeats one of their halves after 5 s. @param isOtherSeen whether the other half comes here */
async function halfRepeated(isOtherSeen: boolean): Promise<boolean> {
  const packets = Array.from({ length: 40 }, (_, i) => {
    const [atMs, name] = [i * 9000, `n${i % 3}.shop.svc.cluster.local.`];
    const way = ends('10.244.1.7', 30_000 + i, '10.244.2.5');
    const aaaa = { type: 'AAAA', tookMs: 0.3 } as const;
    if (i % 2 === 0)
      return [
        ...asked(atMs, way, name, 100 + i, { tookMs: 0.3 }),
        ...asked(atMs + 0.1, way, name, 900 + i, aaaa),
      ];
    return [0, 5000].flatMap((afterMs) => [
      ...asked(atMs + afterMs, way, name, 100 + i, { tookMs: 0.3 }),
      ...(isOtherSeen || afterMs > 0 ? asked(atMs + afterMs + 0.1, way, name, 900 + i, aaaa) : []),
    ]);
  });
  const { findings } = await examine(inOrder(packets));
  return findings.some(({ code }) => code === 'ND3021');
}

test('a client repeats both queries of a pair if one was lost before it came here', async () => {
  assert.equal(await halfRepeated(true), true);
  assert.equal(await halfRepeated(false), false);
});
