import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCommand } from '../../../../test/kit/trace-command.ts';
import { webhook } from './webhook.ts';

test('unreadable advice is not a usage error', async () => {
  const { code, err } = await runCommand(webhook, ['serve', '--advice', '/nowhere']);
  assert.equal(code, 2);
  assert.match(err, /\/nowhere: cannot read the advice: no such file or directory/);
});
