import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';
import type { Captured } from '../../../../test/kit/packets.ts';
import type { Finding } from './finding.ts';

const SECONDS = 60;
/** From the first to the second one, the crawler looks up names. */
const FLOOD = { from: 15, to: 40 };

/**
 * Two clients look up names that are answered, and a crawler looks up names in a zone.
 * @param isRefused for the second of the query
 * @param zoneOf the domain of the crawler's nth name
 */
async function findingsFor(
  isRefused: (second: number) => boolean,
  zoneOf: (nth: number) => string,
): Promise<readonly Finding[]> {
  const packets: Captured[][] = [];
  const add = (ms: number, client: string, name: string, rcode: number | null): void => {
    const query = rcode === null ? { tookMs: null } : { rcode, tookMs: 1 };
    packets.push(asked(ms, ends(client, 20_000 + packets.length), name, packets.length + 1, query));
  };
  let nth = 0;
  for (let second = 0; second < SECONDS; second++) {
    const refused = isRefused(second) ? RCODE.REFUSED : 0;
    for (const client of ['10.244.1.1', '10.244.1.2']) {
      add(second * 1000 + 10, client, 'api.example.com.', refused);
      add(second * 1000 + 20, client, 'db.shop.svc.cluster.local.', 0);
    }
    const isFlood = second >= FLOOD.from - 1 && second < FLOOD.to - 2;
    for (let i = 0; isFlood && i < 20; i++, nth++)
      add(second * 1000 + i, '10.244.9.9', `www${nth}.${zoneOf(nth)}.`, null);
  }
  return (await examine(inOrder(packets))).findings;
}

const isInFlood = (second: number): boolean => second >= FLOOD.from && second < FLOOD.to;

test('refusals while many queries for a dead zone wait show a limit, the zone and the client', async () => {
  const all = await findingsFor(isInFlood, () => 'parked.biz');
  const [first] = all;
  assert.equal(first?.code, 'ND4010');
  assert.match(first.title, /limit on waiting queries/);
  assert.match(first.seen.join(' '), /names in parked\.biz waited/);
  assert.match(first.seen.join(' '), /answered before or afterwards: api\.example\.com/);
  assert.match(first.seen.join(' '), /10\.244\.9\.9 sends 100 %/);
  assert.equal(all.filter(({ severity }) => severity === 'critical').length, 1);
});

test('refusals at all times, or with losses of many zones, are not those of a limit that one zone uses up', async () => {
  for (const all of [
    await findingsFor(
      (second) => second % 2 === 0,
      () => 'parked.biz',
    ),
    await findingsFor(isInFlood, (nth) => `zone${nth % 40}.net`),
  ])
    assert.ok(!all.some(({ title }) => title.includes('servers of a zone do not answer')));
});
