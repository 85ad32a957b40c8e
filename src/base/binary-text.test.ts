import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isBinary } from './binary-text.ts';

test('text is text in every language, with tabs and colours', () => {
  for (const text of [
    '',
    'a: 1\n',
    'schlüssel: größer\n\tx\r\n',
    '日本語',
    '\u001b[31mred\u001b[0m',
  ])
    assert.equal(isBinary(text), false, text);
});

test('bytes that are no UTF-8, and zeros, are none', () => {
  assert.equal(isBinary(Buffer.from([0xff, 0xfe, 0x61, 0, 0x62, 0]).toString('utf8')), true);
  assert.equal(isBinary('\u007fELF\u0002\u0001\u0001\u0000\u0000'), true);
});

test('one wrong byte in a long text makes no binary file of it', () => {
  assert.equal(isBinary(`# by M\ufffdller\n${'a: 1\n'.repeat(100)}`), false);
});
