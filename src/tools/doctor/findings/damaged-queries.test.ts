import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checksummed, type Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [CLIENT, POD] = ['10.244.1.5', '10.244.2.7'];

/** A packet whose checksum is that of other addresses. */
function damaged(packet: Captured): Captured {
  const bytes = checksummed(packet.bytes);
  bytes[26]! ^= 1;
  return { ...packet, bytes };
}

/** Queries at a DNS pod, before and after others that are answered. */
async function codes(change: (query: Captured) => Captured, isAnswered: boolean) {
  const packets = Array.from({ length: 40 }, (_, i) => {
    const name = `n${i % 7}.shop.svc.cluster.local.`;
    const isHit = i % 2 === 0;
    const tookMs = isHit && !isAnswered ? null : 0.5;
    const client = isHit ? CLIENT : '10.244.2.9';
    const [query, ...reply] = asked(i * 500, ends(client, 30_000 + i, POD), name, i, { tookMs });
    return [isHit ? change(query!) : query!, ...reply];
  });
  return (await examine(inOrder(packets))).findings.map(({ code }) => code);
}

test('unanswered queries whose checksum is wrong are dropped by the kernel', async () => {
  assert.equal((await codes(damaged, false))[0], 'ND3046');
});

test('a checksum that is left to the network card, or answered queries, show no damage', async () => {
  const partial = (query: Captured): Captured => ({
    ...query,
    bytes: checksummed(query.bytes, 'partial'),
  });
  assert.ok(!(await codes(partial, false)).includes('ND3046'));
  assert.ok(!(await codes(damaged, true)).includes('ND3046'));
});
