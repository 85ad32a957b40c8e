import assert from 'node:assert/strict';
import { test } from 'node:test';
import { back, TCP, tcpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const POD = '10.244.1.3';
const nameOf = (i: number): string => `n${i % 5}.shop.svc.cluster.local.`;

/** On a node: one pod queries this address, which nothing translates, and another one queries the Service. */
function untranslated(client: string, address: string): readonly Captured[] {
  return inOrder(
    Array.from({ length: 40 }, (_, i) => {
      const [atMs, port] = [i * 500, 30_000 + i];
      return [
        ...asked(atMs, ends(client, port, address), nameOf(i), port, { tookMs: null }),
        ...asked(atMs + 200, ends('10.244.1.9', port), nameOf(i), port, { tookMs: 1 }),
        ...asked(atMs + 200.1, ends('10.244.1.9', port, POD), nameOf(i), port, { tookMs: 0.5 }),
      ];
    }),
  );
}

test('a Service address of the other IP family that is not translated lacks rules', async () => {
  const [first] = (await examine(untranslated('fd00:10:244:1::15', 'fd00:10:96::a'))).findings;
  assert.equal(first?.code, 'ND3005');
  assert.match(first.title, /does not translate the DNS Service’s IPv6 address/);
  assert.match(first.fix[0]!, /ip6tables-save \| grep fd00:10:96::a/);
  const [wrong] = (await examine(untranslated('10.244.1.15', '10.100.0.10'))).findings;
  assert.match(wrong?.title ?? '', /address other than the DNS Service’s/);
});

test('a dead server that is listed before the DNS Service is not treated as a Service', async () => {
  const pod = '10.244.1.15';
  const packets = Array.from({ length: 12 }, (_, i) => {
    const [atMs, port] = [i * 6000, 30_000 + i];
    return [
      ...[pod, '172.18.0.2'].flatMap((from, hop) =>
        asked(atMs + hop * 0.1, ends(from, port, '10.40.1.53'), nameOf(i), port, {
          tookMs: null,
        }).map((packet) => ({ ...packet, port: hop })),
      ),
      ...asked(atMs + 5000, ends(pod, port), nameOf(i), port, { tookMs: 1 }),
      ...asked(atMs + 5000.1, ends(pod, port, POD), nameOf(i), port, { tookMs: 0.5 }),
    ];
  });
  const [first] = (await examine(inOrder(packets))).findings;
  assert.equal(first?.title, 'A name server never answers');
  assert.match(first.seen.join(), /10\.40\.1\.53/);
});

/** One pod without replies to its queries, and its connections. @param flags of the replies to SYN; null: none */
function connecting(flags: number | null): readonly Captured[] {
  return inOrder(
    Array.from({ length: 12 }, (_, i) => {
      const [atMs, port] = [i * 2000, 30_000 + i];
      const way = { from: '10.244.1.5', fromPort: 40_000 + i, to: `10.96.8.${i % 3}`, toPort: 80 };
      return [
        ...asked(atMs, ends('10.244.1.5', port), nameOf(i), port, { tookMs: null }),
        at(atMs + 300, tcpPacket(way, 1 + 1000 * i, TCP.SYN)),
        ...(flags === null ? [] : [at(atMs + 301, tcpPacket(back(way), 1, flags))]),
      ];
    }),
  );
}

test('a pod whose connections work while its queries get no reply may be cut off by a policy', async () => {
  const titleOf = async (flags: number | null) =>
    (await examine(connecting(flags))).findings.find(({ code }) => code === 'ND3005')?.title;
  assert.match((await titleOf(TCP.SYN | TCP.ACK)) ?? '', /TCP connections to other addresses work/);
  assert.equal(await titleOf(null), 'A name server never answers');
  assert.equal(await titleOf(TCP.RST | TCP.ACK), 'A name server never answers');
});
