import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzzApiFaults } from './api-faults.ts';

test('answers follow the cluster through every API server failure and never disappear', async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  t.diagnostic(`seed ${seed}`);
  const report = await fuzzApiFaults(seed, { seconds: 5 });
  t.diagnostic(JSON.stringify(report));
  assert.ok(report.compared > 0 && report.faults > 0);
});
