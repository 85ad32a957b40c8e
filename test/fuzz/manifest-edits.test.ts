import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzzManifestEdits } from './manifest-edits.ts';

test('answers follow a directory of manifests through all operations on files', async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  t.diagnostic(`seed ${seed}`);
  const report = await fuzzManifestEdits(seed, 2);
  t.diagnostic(JSON.stringify(report));
  assert.ok(report.compared > 0);
});
