import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gluedBrace } from './glued-brace.ts';

test('a brace at the end or start of a word is separated from it', () => {
  const lines = (word: string): readonly string[] | undefined => gluedBrace(word)?.lines;
  assert.deepEqual(lines('.:53{'), ['.:53 {']);
  assert.deepEqual(lines('.:53{}'), ['.:53 {', '}']);
  assert.deepEqual(lines('{}'), ['{', '}']);
  assert.deepEqual(lines('{whoami'), ['{', 'whoami']);
  assert.deepEqual(lines('whoami}'), ['whoami', '}']);
  assert.deepEqual(lines('}}'), ['}', '}']);
});

test('braces that stand alone or enclose a name are not separated', () => {
  for (const word of ['{', '}', '{{', '{$NAME}', '{combined}', 'a{2}b', 'cache'])
    assert.equal(gluedBrace(word), null, word);
});
