import assert from 'node:assert/strict';
import { test } from 'node:test';
import { udpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [CLIENT, BUSY] = ['10.244.1.5', '10.244.1.32'] as const;
const PODS = ['10.244.2.8', '10.244.2.9'] as const;

/** On the node: from 12 s to 30 s half of the new sockets get no further. @param perSecond new sockets of another pod */
async function first(perSecond: number, isTranslated: boolean) {
  const dns = Array.from({ length: 200 }, (_, i) => {
    const [atMs, port, name] = [i * 200, 30_000 + i, `n${i % 20}.example.com.`];
    const isLost = atMs > 12_000 && atMs < 30_000 && (i * 7919) % 11 < 5;
    const way = ends(CLIENT, port);
    const tries = isLost ? [0, 5000] : [0];
    return tries.flatMap((later) => [
      ...asked(atMs + later, way, name, i, { tookMs: isLost ? null : 1 }),
      ...(isLost && !isTranslated
        ? []
        : asked(atMs + later + 0.1, ends(CLIENT, port, PODS[i % 2]), name, i, {
            tookMs: isLost ? null : 0.6,
          })),
    ]);
  });
  const other = Array.from({ length: 18 * perSecond }, (_, i): Captured => {
    const way = { from: BUSY, fromPort: 20_000 + i, to: '203.0.113.5', toPort: 9999 };
    return at(12_000 + (i * 1000) / perSecond, udpPacket(way, new Uint8Array(20), i));
  });
  const { findings } = await examine(inOrder([...dns, other]));
  return findings[0];
}

test('new sockets get no further than the node while a pod opens very many', async () => {
  const found = await first(60, false);
  assert.equal(found?.code, 'ND3003');
  assert.match(found.seen.join(' '), /10\.244\.1\.32 opened/);
});

test('no pod opens many sockets: the table is not shown to be full', async () => {
  const found = await first(2, false);
  assert.doesNotMatch(found?.seen.join(' ') ?? '', /10\.244\.1\.32/);
});

test('the queries leave the node: it does not drop them', async () => {
  const found = await first(60, true);
  assert.doesNotMatch(found?.seen.join(' ') ?? '', /10\.244\.1\.32/);
});
