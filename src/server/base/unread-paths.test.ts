import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnreadPaths } from './unread-paths.ts';

test('an unreadable path hides itself and its contents, but not paths with a similar name', () => {
  const unread = new UnreadPaths();
  assert.equal(unread.hides('/zones/a'), false);
  unread.add('/zones/a', new Error('EACCES'));
  assert.equal(unread.hides('/zones/a'), true);
  assert.equal(unread.hides('/zones/a/b/c'), true);
  assert.equal(unread.hides('/zones/ab'), false);
  assert.equal(unread.hides('/zones'), false);
});
