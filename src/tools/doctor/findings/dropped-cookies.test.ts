import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dnsMessage, udpPacket, back } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const COOKIE = { code: 10, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) };

/** Queries with EDNS from two DNS pods to an upstream; the second one sends single queries without a cookie. */
async function codes(isLost: (hasCookie: boolean, nth: number) => boolean) {
  const packets = Array.from({ length: 60 }, (_, nth) => {
    const hasCookie = nth % 3 !== 0;
    const way = ends('10.244.2.5', 20_000 + nth, '10.10.0.53');
    const options = hasCookie ? [COOKIE] : [];
    const edns = { udpSize: 1232, version: 0, dnssecOk: false, options };
    const name = `n${nth % 9}.example.org.`;
    const query = udpPacket(way, dnsMessage(name, 'A', { id: nth, edns }), nth + 1);
    if (isLost(hasCookie, nth)) return [at(nth * 500, query)];
    const reply = dnsMessage(name, 'A', { id: nth, reply: true, edns });
    return [at(nth * 500, query), at(nth * 500 + 1, udpPacket(back(way), reply, nth + 100))];
  });
  const { findings } = await examine(inOrder(packets));
  return findings.map(({ code }) => code);
}

test('losses of queries with a cookie, and of no others with EDNS, have ND4066 alone', async () => {
  assert.deepEqual(await codes((hasCookie) => hasCookie), ['ND4066']);
});

test('losses regardless of the cookie have another cause', async () => {
  assert.ok(!(await codes((_, nth) => (nth * 7) % 10 < 5)).includes('ND4066'));
  assert.ok(!(await codes(() => true)).includes('ND4066'));
});
