import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { foldName, NameError, parseName, printName, suffixAt } from './name.ts';

describe('names', () => {
  test('a missing final dot is assumed', () => {
    assert.deepEqual(parseName('example.org'), parseName('example.org.'));
    assert.deepEqual(parseName('.'), Uint8Array.of(0));
  });

  test('wire form preserves case, and folding removes it', () => {
    assert.equal(printName(parseName('WWW.Example.ORG')), 'WWW.Example.ORG.');
    assert.equal(printName(foldName(parseName('WWW.Example.ORG'))), 'www.example.org.');
  });

  test('dots, quotes and blanks within labels are escaped, as in BIND', () => {
    const name = Uint8Array.of(6, ...Buffer.from('a.b "@'), 0);
    assert.equal(printName(name), 'a\\.b\\032\\"\\@.');
    assert.deepEqual(parseName('a\\.b\\032\\"\\@'), name);
    assert.equal(printName(Uint8Array.of(2, 0, 255, 0)), '\\000\\255.');
  });

  test('non-ASCII characters become their UTF-8 bytes', () => {
    assert.equal(printName(parseName('bücher.example')), 'b\\195\\188cher.example.');
    assert.equal(printName(parseName('é\\046.x')), '\\195\\169\\..x.');
  });

  test('labels have at most 63 bytes and names at most 255', () => {
    const label = 'a'.repeat(63);
    assert.equal(parseName(label).length, 65);
    assert.throws(() => parseName(`${label}a`), NameError);
    const longest = `${label}.${label}.${label}.${'a'.repeat(61)}`;
    assert.equal(parseName(longest).length, 255);
    assert.equal(parseName(`${longest}.`).length, 255);
    assert.throws(() => parseName(`${longest}a`), NameError);
    assert.equal(parseName('a.'.repeat(127)).length, 255);
    assert.throws(() => parseName('a.'.repeat(128)), NameError);
  });

  test('empty labels, lone backslashes and escapes above 255 are rejected', () => {
    for (const text of ['a..b', '.a', '..', 'a\\', '\\256', '\\999.'])
      assert.throws(() => parseName(text), NameError, text);
  });

  test('a name is in a zone only at a label boundary', () => {
    const zone = parseName('example.org');
    assert.equal(suffixAt(parseName('example.org'), zone), 0);
    assert.equal(suffixAt(parseName('a.example.org'), zone), 2);
    assert.equal(suffixAt(parseName('badexample.org'), zone), -1);
    assert.equal(suffixAt(parseName('org'), zone), -1);
    assert.equal(suffixAt(parseName('a.b.example.org'), zone), 4);
    assert.equal(suffixAt(parseName('a.b.example.com'), zone), -1);
  });
});
