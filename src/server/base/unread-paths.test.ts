import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnreadPaths } from './unread-paths.ts';

test('what could not be read hides itself and what lies in it, and nothing that is only named alike', () => {
  const unread = new UnreadPaths();
  assert.equal(unread.hides('/zones/a'), false);
  unread.add('/zones/a', new Error('EACCES'));
  assert.equal(unread.hides('/zones/a'), true);
  assert.equal(unread.hides('/zones/a/b/c'), true);
  assert.equal(unread.hides('/zones/ab'), false);
  assert.equal(unread.hides('/zones'), false);
});
