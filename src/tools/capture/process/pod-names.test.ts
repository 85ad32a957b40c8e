import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { PodNames } from './pod-names.ts';

const directory = mkdtempSync(join(tmpdir(), 'pods-'));
after(() => rmSync(directory, { recursive: true }));
const UID = '1a2b3c4d-0000-4111-8222-333344445555';

test('a pod is named by the directory of its logs', () => {
  mkdirSync(join(directory, `shop_client-5d78c9869d-abcde_${UID}`));
  mkdirSync(join(directory, 'other'));
  const names = new PodNames([join(directory, 'missing'), directory]);
  assert.equal(names.nameOf(UID), 'shop/client-5d78c9869d-abcde');
});

test('a pod without such a directory has no name, and the directory is not read for each query', (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const names = new PodNames([directory]);
  assert.equal(names.nameOf('new'), null);
  mkdirSync(join(directory, 'shop_web_new'));
  nowMs = 1000;
  assert.equal(names.nameOf('new'), null);
  nowMs = 3000;
  assert.equal(names.nameOf('new'), 'shop/web');
});

test('a machine that is not a node has no pods', () => {
  assert.equal(new PodNames([join(directory, 'missing')]).nameOf(UID), null);
});
