import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const facts = `
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
test('holds', () => {});
test('is wrong', () => assert.equal(1, 2));
test('a whole', async (t) => {
  await t.test('a good part', () => {});
  await t.test('a bad part', () => assert.equal(1, 2));
});
describe('needs a moon', { skip: 'no moon here' }, () => {
  test('one', () => {});
  test('two', () => {});
});
describe('a suite', () => {
  test('fine', () => {});
  test('needs the moon, too', (t) => t.skip('no moon here'));
  test('needs a star', (t) => t.skip('no star here'));
});
`;

test('each test counts once, suites count as their tests, and each reason for skipping is one line', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-count-'));
  t.after(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, 'facts.test.ts'), facts);
  writeFileSync(join(directory, 'broken.test.ts'), "throw new Error('not even loaded');\n");
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout, status } = spawnSync(process.execPath, ['tools/test.ts', `${directory}/*.ts`], {
    encoding: 'utf8',
    env,
  });
  assert.equal(status, 1);
  const lines = stdout.trimEnd().split('\n');
  assert.equal(lines.at(-1), '3 passed, 3 failed, 3 skipped');
  const skipped = lines.filter((line) => line.startsWith('skipped: '));
  assert.equal(skipped.length, 2);
  assert.match(skipped[0]!, /^skipped: 2 of \S+facts\.test\.ts: no moon here$/);
  assert.match(skipped[1]!, /^skipped: "needs a star" in \S+facts\.test\.ts: no star here$/);
  assert.match(stdout, /not even loaded|'test failed'/);
  // Only a single total is printed, without the runner's own summary.
  assert.doesNotMatch(stdout, /^ℹ (tests|pass|fail)/m);
});
