import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { asciiName, isUtf8Locale, libidnName, pythonName } from './idn.ts';

describe('non-ASCII names', () => {
  test('UTS 46 preserves the sharp s, IDNA 2003 converts it to ss', () => {
    assert.equal(asciiName('STRAßE.example'), 'xn--strae-oqa.example');
    assert.equal(pythonName('STRAßE.example'), 'strasse.example');
  });

  test('an ideographic full stop is a dot, and a trailing dot stays', () => {
    assert.equal(asciiName('bücher。example'), 'xn--bcher-kva.example');
    assert.equal(pythonName('bücher。example.'), 'xn--bcher-kva.example.');
  });

  test('ASCII names are unchanged', () => {
    for (const name of ['_srv.Example', 'a..b', 'xn--bcher-kva.example']) {
      assert.equal(asciiName(name), name);
      assert.equal(libidnName(name, true), name);
    }
  });

  test('AI_IDN rejects symbols, curl accepts them', () => {
    assert.equal(libidnName('☃.example', true), null);
    assert.equal(libidnName('☃.example', false), 'xn--n3h.example');
  });

  test('a label whose converted form exceeds 63 bytes is refused', () => {
    assert.equal(libidnName(`${'ü'.repeat(60)}.example`, false), null);
    assert.deepEqual(pythonName(`ab.${'ü'.repeat(60)}`), { kind: 'long', from: 3, length: 60 });
  });

  test("Python's codec also checks ASCII labels", () => {
    assert.deepEqual(pythonName(`${'a'.repeat(64)}.example`), {
      kind: 'long',
      from: 0,
      length: 64,
    });
    assert.deepEqual(pythonName('a..b'), { kind: 'empty', from: 2, length: 1 });
    assert.deepEqual(pythonName('xn--ü.example'), { kind: 'prefix', from: 0, length: 4 });
    assert.equal(pythonName(`${'a'.repeat(63)}.example.`), `${'a'.repeat(63)}.example.`);
  });

  test('without a locale libc does not read UTF-8', () => {
    assert.equal(isUtf8Locale({}), false);
    assert.equal(isUtf8Locale({ LANG: 'en_US.UTF-8' }), true);
    assert.equal(isUtf8Locale({ LANG: 'C.UTF-8', LC_ALL: 'C' }), false);
  });
});
