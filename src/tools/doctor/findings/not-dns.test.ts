import assert from 'node:assert/strict';
import { test } from 'node:test';
import { back, TCP, tcpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const CLIENT = '10.36.0.44';
const [NEAR, FAR] = ['10.36.0.7', '10.36.8.7'] as const;

/** On the node: one packet in four to some addresses is lost. @param isLossy whether it is on the way to this one */
async function first(isLossy: (address: string) => boolean) {
  const dns = Array.from({ length: 240 }, (_, i) => {
    const pod = i % 2 === 0 ? NEAR : FAR;
    const [atMs, port, name] = [i * 200, 30_000 + i, `n${i % 13}.shop.svc.cluster.local.`];
    const tries = isLossy(pod) && i % 4 === (pod === FAR ? 1 : 0) ? [0, 2500] : [2500];
    return tries.flatMap((laterMs, nth) => {
      const isLost = nth < tries.length - 1;
      const [outside, inside] = isLost ? [null, null] : [1, 0.6];
      return [
        ...asked(atMs + laterMs, ends(CLIENT, port), name, i + 1, { tookMs: outside }),
        ...asked(atMs + laterMs + 0.1, ends(CLIENT, port, pod), name, i + 1, { tookMs: inside }),
      ];
    });
  });
  const others = Array.from({ length: 50 }, (_, i): Captured[] => {
    const way = { from: CLIENT, fromPort: 41_000 + i, to: '10.39.4.4', toPort: 80 };
    const behind = { ...way, to: '10.36.8.80', toPort: 8080 };
    const tries = i % 4 === 0 ? [0, 1000] : [0];
    return [
      ...tries.flatMap((ms) => [
        at(i * 900 + ms, tcpPacket(way, 500 + i, TCP.SYN)),
        at(i * 900 + ms + 0.1, tcpPacket(behind, 500 + i, TCP.SYN)),
      ]),
      at(i * 900 + tries.at(-1)! + 1, tcpPacket(back(behind), 1, TCP.SYN | TCP.ACK)),
      at(i * 900 + tries.at(-1)! + 1.1, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK)),
    ];
  });
  const { findings } = await examine(inOrder([...dns, ...others]));
  return findings[0];
}

test('if one DNS pod and other connections lose packets, the path to them is named, and the one that loses nothing', async () => {
  const found = await first((address) => address === FAR);
  assert.equal(found?.code, 'ND3090');
  assert.match(found.title, /path to some addresses/);
  const seen = found.seen.join(' ');
  assert.match(
    seen,
    /to 10\.36\.8\.7 \(\d+ of \d+\) or back, but not with 10\.36\.0\.7 \(0 of \d+\)/,
  );
  assert.match(seen, /10\.39\.4\.4 port 80 at 10\.36\.8\.80 \(13 repeats, 50 connections\)/);
});

test('if all paths lose packets, none is named', async () => {
  const found = await first(() => true);
  assert.equal(found?.code, 'ND3090');
  assert.doesNotMatch(found.title, /path/);
});
