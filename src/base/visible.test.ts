import assert from 'node:assert/strict';
import { test } from 'node:test';
import { harmless, visible } from './visible.ts';

test('a terminal gets colours of a text, and nothing else that it would obey', () => {
  const text = '\u001b[31mred\u001b[0m\r\n\t\u001b]0;mine\u0007\u001b[2J\u009b1A Zoë';
  assert.equal(harmless(text), '\u001b[31mred\u001b[0m\r\n\t\\x1b]0;mine\\x07\\x1b[2J\\x9b1A Zoë');
  assert.equal(visible('\u001b[31mred\r\n'), '\\x1b[31mred\\x0d\n');
});
