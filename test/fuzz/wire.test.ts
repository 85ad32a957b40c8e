import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzzWire } from './wire.ts';

test('two seconds of damaged messages break no guarantee of the codec', async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const report = await fuzzWire(seed, Infinity, 2);
  t.diagnostic(JSON.stringify(report));
  // The damage is mild enough to reach all parts of the codec.
  assert.ok(report.messages > 0 && report.queries > 0 && report.replies > 0);
});
