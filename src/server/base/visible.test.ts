import assert from 'node:assert/strict';
import { test } from 'node:test';
import { oneLine, visible } from './visible.ts';

test('control characters are made visible; line ends and tabs stay', () => {
  assert.equal(
    visible('\u001b[31mred\r\n\t\u007f\u009b1A Zoë'),
    '\\u001b[31mred\\u000d\n\t\\u007f\\u009b1A Zoë',
  );
  assert.equal(oneLine('a\n\n;; forged\u001b[2J'), 'a ;; forged\\u001b[2J');
});

test('zero-width characters and those that change the reading direction are made visible', () => {
  for (const hidden of '\u00ad\u061c\u200b\u200d\u200e\u200f\u2028\u2029\u202a\u202e\u2060\u2066\u2069\u3164\ufe0f\ufeff')
    assert.equal(
      visible(`a${hidden}b`),
      `a\\u${hidden.charCodeAt(0).toString(16).padStart(4, '0')}b`,
    );
  assert.equal(visible('a\u{e0041}b'), 'a\\udb40\\udc41b');
  assert.equal(visible('a\ud800b'), 'a\\ud800b');
});

test('letters of all scripts, emoji and box-drawing characters stay', () => {
  const text = 'ñ 例え.テスト ישראל العربية ελ 😀 ✓ ✗ → │ … \ufffd';
  assert.equal(visible(text), text);
});

test('a JSON document remains the same document', () => {
  const value = { '\u009b\u202e': ['\u007f', '\u{e0041}', '\n"\\'] };
  const text = JSON.stringify(value);
  assert.notEqual(visible(text), text);
  assert.deepEqual(JSON.parse(visible(text)), value);
});
