import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import type { Finding } from './finding.ts';

const CACHE = '169.254.20.10';
const path = ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''];

/** A pod looks a Service up every two seconds, and walks its search path each time. @param ttlOf by second */
async function denied(ttlOf: (second: number) => number): Promise<readonly Finding[]> {
  const packets = Array.from({ length: 16 }, (_, i) => {
    const port = 30_000 + i;
    const found = asked(i * 2000 + 900, ends('10.244.1.29', 40_000 + i, CACHE), `db.${path[0]}`, i);
    const steps = path.flatMap((domain, step) =>
      asked(i * 2000 + step * 2, ends('10.244.1.29', port, CACHE), `invoices.${domain}`, port, {
        ...{ rcode: 3, ttl: ttlOf(i * 2) },
      }),
    );
    return [...steps, ...found];
  });
  return (await examine(inOrder(packets))).findings;
}

test('a Service that is denied from one cache entry for an hour', async () => {
  const [first] = await denied((second) => 3600 - second);
  assert.equal(first?.code, 'ND8003');
  assert.match(first.seen[0]!, /invoices\.shop\.svc\.cluster\.local\..*3600, 3598/);
});

test('short denials, and long ones that are renewed each time, are of a name that does not exist', async () => {
  for (const ttlOf of [(second: number) => 30 - (second % 30), () => 3600]) {
    const codes = (await denied(ttlOf)).map(({ code }) => code);
    assert.ok(!codes.includes('ND8003'), codes.join());
    assert.ok(codes.includes('ND2008'), codes.join());
  }
});
