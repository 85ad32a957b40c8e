import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasControls, isBinary, isNoUtf8, lineThatIsNoText } from './binary-text.ts';

test('text in any language is text, including tabs and colour codes', () => {
  for (const text of [
    '',
    'a: 1\n',
    'schlüssel: größer\n\tx\r\n',
    '日本語',
    '\u001b[31mred\u001b[0m',
  ])
    assert.equal(isBinary(text), false, text);
});

test('NULs and control characters make input binary', () => {
  assert.equal(isBinary(Buffer.from([0xff, 0xfe, 0x61, 0, 0x62, 0]).toString('utf8')), true);
  assert.equal(isBinary('\u007fELF\u0002\u0001\u0001\u0000\u0000'), true);
});

test('text in KOI8-R, GBK or Latin-1 is text but not UTF-8', () => {
  for (const bytes of ['cbcfcdcdc5ced4c1d2c9ca', 'd7a2cacd', '4df66c6c6572']) {
    const text = Buffer.from(bytes, 'hex').toString('utf8');
    assert.equal(isBinary(text), false, bytes);
    assert.equal(isNoUtf8(text), true, bytes);
  }
});

test('a single invalid byte in a long text makes it neither binary nor another encoding', () => {
  assert.equal(isNoUtf8(`# by M\ufffdller\n${'a: 1\n'.repeat(100)}`), false);
});

test('control characters are detected anywhere in a line, except in tabs and colour codes', () => {
  assert.equal(hasControls(`${'x'.repeat(1000)}\u0000`), true);
  assert.equal(hasControls('\u001b[31mred\u001b[0m\t'), false);
});

test('the first line that is not text is reported', () => {
  assert.equal(lineThatIsNoText('a\nb\n\u0000\n\u0001'), 3);
  assert.equal(lineThatIsNoText('a\r\n\tb\n\u001b[0m'), 0);
});
