import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzzCaptures } from './captures.ts';

test('changed and damaged captures are read and diagnosed without an exception', async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const report = await fuzzCaptures(seed, Infinity, 3);
  t.diagnostic(JSON.stringify({ seed, ...report }));
  // The damage is mild enough to reach pairing and the findings.
  assert.ok(report.exchanges > 0 && report.findings > 0);
});
