import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressRecord, back, dnsMessage, udpPacket } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import type { Finding } from './finding.ts';

const POD = '10.244.1.47';
const cached = ['api.github.com.', 'api.stripe.com.', 'sentry.io.'];
const GONE_S = 20;

/** Answers of a cache for three names. From some second on, names that it lacks fail after seconds. */
async function served(ttlOf: (second: number, name: number) => number): Promise<Finding[]> {
  const packets = Array.from({ length: 90 }, (_, i) => {
    const [ms, name] = [i * 500, cached[i % 3]!];
    const way = ends(POD, 30_000 + i);
    const answer = [addressRecord(name, `192.0.2.${i % 3}`, ttlOf(ms / 1000, i % 3))];
    const isNew = ms > GONE_S * 1000 + 1000 && i % 6 === 0;
    return [
      at(ms, udpPacket(way, dnsMessage(name, 'A', { id: i }), i + 1)),
      at(ms + 0.4, udpPacket(back(way), dnsMessage(name, 'A', { id: i, reply: true, answer }))),
      ...asked(ms + 200, ends(POD, 40_000 + i), `db${i % 4}.shop.svc.cluster.local.`, i),
      ...(isNew
        ? asked(ms + 100, ends(POD, 50_000 + i), `n${i}.debian.org.`, i, {
            ...{ rcode: 2, tookMs: 4000 },
          })
        : []),
    ];
  });
  return [...(await examine(inOrder(packets))).findings];
}

/** TTL of an entry that is fetched again every six seconds. */
const countdown = (second: number): number => 6 - (Math.floor(second) % 6);

test('known names get TTL 0 from some moment on, and new ones fail: the upstream is gone', async () => {
  const [first] = await served((second) => (second < GONE_S ? countdown(second) : 0));
  assert.equal(first?.code, 'ND4038');
  assert.match(first.seen.join(' '), /3 names that it had cached have TTL 0.*debian\.org/);
});

test('names that always have TTL 0, or whose TTLs are renewed, are not stale', async () => {
  for (const ttlOf of [
    () => 0,
    countdown,
    (s: number, name: number) => (name > 0 ? countdown(s) : 0),
  ])
    assert.ok(!(await served(ttlOf)).some(({ code }) => code === 'ND4038'));
});

/** Answers for A, with the code that they are expired, and no reply to AAAA of another name. */
async function withCode(infoCode: number | null): Promise<readonly Finding[]> {
  const options = infoCode === null ? [] : [{ code: 15, data: Uint8Array.of(0, infoCode) }];
  const edns = { udpSize: 1232, version: 0, dnssecOk: false, options };
  const packets = Array.from({ length: 40 }, (_, i) => {
    const name = i % 2 === 0 ? 'kafka.corp.example.' : 'orders.corp.example.';
    const way = ends(POD, 30_000 + i);
    const answer = [addressRecord(name, '192.0.2.8', 30)];
    const reply = dnsMessage(name, 'A', { id: i, reply: true, answer, edns });
    return [
      at(i * 1000, udpPacket(way, dnsMessage(name, 'A', { id: i, edns }), i + 1)),
      at(i * 1000 + 0.4, udpPacket(back(way), reply)),
      ...(i % 6 === 1
        ? asked(i * 1000 + 5, ends(POD, 40_000 + i), name, i, { type: 'AAAA', tookMs: null })
        : []),
    ];
  });
  return (await examine(inOrder(packets))).findings;
}

test('AAAA without a reply beside expired answers for A does not depend on the type', async () => {
  const [first, ...others] = await withCode(3);
  assert.equal(first?.code, 'ND4038');
  assert.match(first.seen.join(' '), /6 queries without an expired record.*orders\.corp/);
  assert.ok(!others.some(({ code }) => code === 'ND3009'));
  assert.ok((await withCode(null)).some(({ code }) => code === 'ND3009'));
});
