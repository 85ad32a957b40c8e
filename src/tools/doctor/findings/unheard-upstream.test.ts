import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  back,
  dnsMessage,
  fragments,
  udpPacket,
  type Captured,
} from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import type { Finding } from './finding.ts';

/** Two forwarders at an upstream that answers all; health checks every half second, or none. */
async function atUpstream(from: string, hasChecks: boolean): Promise<Finding | undefined> {
  let id = 0;
  const query = (ms: number, client: string, name: string, type: string) =>
    asked(ms, ends(client, 20_000 + ++id, '10.0.0.2'), name, id, { type, tookMs: 3 });
  const packets = ['23', '53'].flatMap((last) =>
    Array.from({ length: 20 }, (_, i) => [
      ...query(i * 2000, `${from}.${last}`, `n${i >> 2}.example.com.`, 'A'),
      ...(hasChecks
        ? [0, 500, 1000].flatMap((ms) => query(i * 2000 + 100 + ms, `${from}.${last}`, '.', 'NS'))
        : []),
    ]),
  );
  const { findings } = await examine(inOrder(packets));
  return findings.find(({ code }) => code === 'ND3021');
}

test('answered health checks that go on show that no reply arrives, and pod addresses the reason', async () => {
  assert.match((await atUpstream('10.244.1', true))?.why ?? '', /masquerade/);
  assert.doesNotMatch((await atUpstream('10.0.7', true))?.why ?? 'none', /masquerade|none/);
});

test('questions that are asked again without health checks show nothing', async () => {
  assert.equal(await atUpstream('10.244.1', false), undefined);
});

/** At an upstream: small questions that expire soon, and one that fails, followed by two health checks. */
async function atFailing(
  failing: (ms: number, nth: number) => readonly Captured[],
): Promise<readonly string[]> {
  let id = 0;
  const from = '10.0.7.23';
  const query = (ms: number, name: string, type: string) =>
    asked(ms, ends(from, 20_000 + ++id, '10.0.0.2'), name, id, { type, tookMs: 0.3 });
  const packets = Array.from({ length: 16 }, (_, i) => [
    ...[0, 900, 1800].flatMap((ms) => query(i * 6000 + ms, `n${i % 2}.example.com.`, 'A')),
    ...failing(i * 6000 + 100, i),
    ...[2000, 4000].flatMap((ms) => query(i * 6000 + 101 + ms, '.', 'NS')),
  ]);
  return (await examine(inOrder(packets))).findings.map(({ code }) => code);
}

test('health checks after replies in fragments show that these are lost, and not all replies', async () => {
  const codes = await atFailing((ms, nth) =>
    [0, 2000].flatMap((afterMs, half) => {
      const [port, name] = [30_000 + 2 * nth + half, 'keys.example.com.'];
      const way = ends('10.0.7.23', port, '10.0.0.2');
      const edns = { udpSize: 4096, version: 0, dnssecOk: false, options: [] };
      const answer = Array.from({ length: 9 }, () => ({
        ...{ name, type: 16, class: 1, ttl: 30 },
        data: { strings: ['v'.repeat(250)] },
      }));
      const long = dnsMessage(name, 'TXT', { id: port, reply: true, answer });
      return [
        at(ms + afterMs, udpPacket(way, dnsMessage(name, 'TXT', { id: port, edns }), port)),
        ...fragments(back(way), long, 1480, port).map((bytes) => at(ms + afterMs + 1, bytes)),
      ];
    }),
  );
  assert.ok(!codes.includes('ND3021'), codes.join(' '));
});

test('health checks after late replies show that the upstream is late, and not that replies are lost', async () => {
  const codes = await atFailing((ms, nth) =>
    [0, 2000].flatMap((afterMs, half) =>
      asked(
        ms + afterMs,
        ends('10.0.7.23', 30_000 + 2 * nth + half, '10.0.0.2'),
        'g.example.',
        nth,
        {
          tookMs: 4100,
          rcode: 2,
        },
      ),
    ),
  );
  assert.ok(!codes.includes('ND3021'), codes.join(' '));
});
