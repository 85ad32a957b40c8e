import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { TCP, tcpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';

const CACHE = '169.254.20.10';
const NODE = '10.0.1.17';
const services = ['cart.shop', 'orders.shop', 'redis.cache', 'pay.shop'].map(
  (name) => `${name}.svc.cluster.local.`,
);

/** Lookups of Services and external names. @param fails whether a Service's query fails at that time */
function traffic(fails: (ms: number, name: string) => boolean): Captured[][] {
  return Array.from({ length: 60 }, (_, nth) => {
    const [ms, name] = [nth * 1000, services[nth % 4]!];
    const way = (port: number) => ends('10.244.1.14', port, CACHE);
    return [
      asked(ms, way(20_000 + nth), name, nth + 1, {
        address: '10.96.3.7',
        ...(fails(ms, name) && { tookMs: 4000, rcode: RCODE.SERVFAIL }),
      }),
      asked(ms + 300, way(30_000 + nth), 'www.example.com.', nth + 1, { tookMs: 3 }),
    ].flat();
  });
}

/** Connections of the node to a DNS pod that get no answer. */
const blocked = (fromMs: number): Captured[] =>
  Array.from({ length: 12 }, (_, nth) => {
    const way = { from: NODE, fromPort: 42_000 + nth, to: '10.244.0.3', toPort: 53 };
    return [0, 1000, 3000].map((ms) => at(fromMs + nth * 2000 + ms, tcpPacket(way, 1, TCP.SYN)));
  }).flat();

const codesOf = async (packets: readonly Captured[][]): Promise<readonly string[]> =>
  (await examine(inOrder(packets))).findings.map(({ code }) => code);

test('a node cache that answers external names but no cluster name from a moment on has ND4070', async () => {
  const codes = await codesOf(traffic((ms) => ms >= 20_000));
  assert.equal(codes[0], 'ND4070');
  assert.ok(!codes.includes('ND2003') && !codes.includes('ND4031'), codes.join());
});

test('names that the cache still has are answered for a while', async () => {
  const isCached = (ms: number, name: string): boolean =>
    ms < 20_000 || (ms < 40_000 && name === services[0]);
  assert.equal((await codesOf(traffic((ms, name) => !isCached(ms, name))))[0], 'ND4070');
});

test('blocked connections to the DNS pods come first, and explain it', async () => {
  const codes = await codesOf([...traffic((ms) => ms >= 20_000), blocked(20_000)]);
  assert.equal(codes[0], 'ND3011');
  assert.ok(!codes.includes('ND4070') && !codes.includes('ND4031'), codes.join());
});

test('blocked connections explain it while the cache still has names', async () => {
  const fails = (ms: number, name: string): boolean =>
    ms >= 20_000 && (ms >= 40_000 || name !== services[0]);
  const codes = await codesOf([...traffic(fails), blocked(20_000)]);
  assert.equal(codes[0], 'ND3011');
  assert.ok(!codes.includes('ND4070') && !codes.includes('ND3010'), codes.join());
});

test('one Service that fails while others are answered is not the path to the cluster’s DNS', async () => {
  const codes = await codesOf(traffic((ms, name) => ms >= 20_000 && name === services[1]));
  assert.equal(codes[0], 'ND4031');
});
