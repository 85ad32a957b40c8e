import assert from 'node:assert/strict';
import { test } from 'node:test';
import { icmpError, type Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [POD, DNS, STUB] = ['10.244.1.9', '10.244.1.5', '127.0.0.53'];

/** A DNS pod asks a stub on loopback, which refuses after 50 ms. @param rounds that each query makes there */
function throughStub(rounds: number): readonly Captured[] {
  return inOrder(
    Array.from({ length: 30 }, (_, i) => {
      const [atMs, name] = [i * 900, `n${i % 4}.example.com.`];
      return [
        ...asked(atMs, ends(POD, 30_000 + i, DNS), name, i + 1, { tookMs: 60, rcode: 5 }),
        ...asked(atMs, ends(POD, 40_000 + i, DNS), 'db.shop.svc.cluster.local.', i + 1),
        ...Array.from({ length: rounds }, (__, round) => {
          const port = 32_768 + ((i * rounds + round) % 20_000);
          return asked(atMs + 0.2 + round * 0.05, ends('127.0.0.1', port, STUB), name, port, {
            tookMs: 50 - round * 0.1,
            rcode: 5,
          });
        }).flat(),
      ];
    }),
  );
}

test('a server that forwards to its own loopback address loops', async () => {
  const [first] = (await examine(throughStub(40))).findings;
  assert.equal(first!.code, 'ND4004');
  assert.match(first!.title, /itself through 127\.0\.0\.53/);
});

test('a stub on loopback that refuses each query once is not a loop', async () => {
  const codes = (await examine(throughStub(1))).findings.map(({ code }) => code);
  assert.ok(!codes.includes('ND4004'), codes.join(', '));
  assert.ok(codes.includes('ND4010'));
});

test('a stub on loopback where nothing listens is a wrong name server', async () => {
  const rejected = Array.from({ length: 30 }, (_, i) => {
    const name = `n${i % 4}.example.com.`;
    return Array.from({ length: 8 }, (__, round) => {
      const [atMs, port] = [i * 900 + round * 0.1, 30_000 + i * 8 + round];
      const way = ends('127.0.0.1', port, STUB);
      const [query] = asked(atMs, way, name, port, { tookMs: null });
      return [query!, at(atMs + 0.01, icmpError(STUB, query!.bytes, 3, 3, '127.0.0.1'))];
    }).flat();
  });
  const [first] = (await examine(inOrder(rejected))).findings;
  assert.equal(first?.code, 'ND3005');
  assert.match(first.why, /systemd-resolved/);
});

test('a loop that fills a limit on waiting queries is the cause, and not a slow upstream', async () => {
  const FORWARDER = '10.0.16.5';
  const rounds = 60;
  const packets = Array.from({ length: 40 }, (_, second) => {
    const [atMs, name] = [second * 1000, `n${second % 2}.example.com.`];
    const isLoop = second >= 10 && second % 5 === 0;
    return [
      ...asked(atMs, ends(POD, 40_000 + second, DNS), 'db.shop.svc.cluster.local.', second + 1),
      ...asked(atMs + 5, ends(POD, 41_000 + second, DNS), 'api.shop.svc.cluster.local.', second),
      ...(isLoop ? asked(atMs, ends(POD, 30_000 + second, DNS), name, 7, late(0)) : []),
      ...Array.from({ length: isLoop ? rounds : 0 }, (__, round) => {
        const [onMs, id] = [atMs + round + 0.3, second * rounds + round];
        const isFull = round === rounds - 1;
        return [
          ...asked(onMs, ends(DNS, 20_000 + id, FORWARDER), name, id, late(round)),
          ...asked(onMs + 0.3, ends(FORWARDER, 20_000 + id, DNS), name, id + 1, late(round)),
          ...Array.from({ length: isFull ? 6 : 0 }, (___, nth) =>
            asked(onMs + 1 + nth, ends(FORWARDER, 50_000 + id + nth, DNS), name, nth, {
              rcode: 5,
              tookMs: 0.1,
            }),
          ).flat(),
        ];
      }).flat(),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  assert.equal(findings[0]?.code, 'ND4004');
  assert.ok(!findings.some(({ title }) => title.includes('limit on waiting queries')));
});

/** Looping queries are refused from the last one to the first one. */
function late(round: number): { readonly rcode: number; readonly tookMs: number } {
  return { rcode: 5, tookMs: 1600 - 2 * round };
}
