import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';
import type { Captured } from '../../../../test/kit/packets.ts';

const NAME = 'db.shop.svc.cluster.local.';
/** Between two pairs, so that a retry does not coincide with another lookup. Milliseconds. */
const EVERY_MS = 37;

/** Pairs from one port each. The second query of the first few is lost, and answered when it is repeated. */
async function severityFor(pairs: number, lost: number): Promise<string | undefined> {
  const packets: Captured[][] = [];
  const gap = Math.floor(pairs / (lost + 1));
  for (let nth = 0; nth < pairs; nth++) {
    const way = ends('10.244.1.7', 10_000 + nth);
    const isLost = nth % gap === gap - 1 && nth < lost * gap;
    const [atMs, id] = [nth * EVERY_MS, nth * 2 + 1];
    packets.push(
      asked(atMs, way, NAME, id),
      asked(atMs + 0.1, way, NAME, id + 1, { type: 'AAAA', ...(isLost ? { tookMs: null } : {}) }),
    );
    if (isLost)
      packets.push(
        asked(atMs + 5000, way, NAME, id),
        asked(atMs + 5001, way, NAME, id + 1, { type: 'AAAA' }),
      );
  }
  const { findings } = await examine(inOrder(packets));
  return findings.find(({ code }) => code === 'ND3001')?.severity;
}

test('a race that hits three of a thousand pairs is a warning, and one of 1% or of many pairs is critical', async () => {
  assert.equal(await severityFor(1000, 3), 'warning');
  assert.equal(await severityFor(200, 3), 'critical');
  assert.equal(await severityFor(3000, 12), 'critical');
});
