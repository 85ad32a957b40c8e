import assert from 'node:assert/strict';
import { test } from 'node:test';
import { back, TCP, tcpPacket, udpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [CLIENT, BUSY] = ['10.244.1.5', '10.244.1.32'] as const;
const PODS = ['10.244.2.8', '10.244.2.9'] as const;

/** On the node: from 12 s to 30 s half of the new sockets get no further. @param perSecond new sockets of another pod */
async function first(
  perSecond: number,
  isTranslated: boolean,
  more: (i: number) => readonly Captured[] = () => [],
) {
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
  const opened = Array.from({ length: 400 }, (_, i) => more(i));
  const { findings } = await examine(inOrder([...dns, other, ...opened]));
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

test('a pod filled the table before queries are lost: connections that it does not close stay in the table', async () => {
  const found = await first(0, false, (i) => {
    const way = { from: BUSY, fromPort: 33_000 + i, to: '10.96.70.70', toPort: 9000 };
    const syn = tcpPacket(way, 1 + i, TCP.SYN);
    const [openedMs, lostMs] = [i * 30, 12_100 + (i - 390) * 4000];
    if (i >= 394) return [];
    if (i >= 390) return [at(lostMs, syn), at(lostMs + 1000, syn)];
    return [at(openedMs, syn), at(openedMs + 0.2, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK))];
  });
  assert.equal(found?.code, 'ND3003');
  assert.match(
    found.seen.join(' '),
    /10\.244\.1\.32 opened .* most of them to 10\.96\.70\.70 port 9000/,
  );
  assert.match(found.seen.join(' '), /4 TCP connections .* repeat/);
});
