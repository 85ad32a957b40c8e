import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import * as encoding from './encoding.ts';

const bytes = fc.uint8Array({ maxLength: 100 });

describe('laws of bytes as text', () => {
  const forms = [
    ['hex', encoding.printHex, encoding.parseHex],
    ['base64', encoding.printBase64, encoding.parseBase64],
    ['base32hex', encoding.printBase32Hex, encoding.parseBase32Hex],
    ['character strings', encoding.printString, encoding.parseString],
  ] as const;
  for (const [what, print, parse] of forms) {
    test(`${what}: parsing printed text gives the same bytes`, () => {
      fc.assert(fc.property(bytes, (value) => assert.deepEqual(parse(print(value)), value)));
    });

    test(`${what}: any parsable text prints to text that gives the same bytes`, () => {
      fc.assert(
        fc.property(fc.string({ maxLength: 40 }), (text) => {
          const value = parse(text);
          if (value !== null) assert.deepEqual(parse(print(value)), value);
        }),
      );
    });
  }

  test('hex and base64 agree with the platform', () => {
    fc.assert(
      fc.property(bytes, (value) => {
        assert.equal(encoding.printHex(value), Buffer.from(value).toString('hex'));
        assert.equal(encoding.printBase64(value), Buffer.from(value).toString('base64'));
      }),
    );
  });

  test('leftover bits, wrong padding and foreign characters are rejected', () => {
    for (const text of ['A', 'AA', 'AB==', 'A===', '====', 'AAAA=', 'A-AA'])
      assert.equal(encoding.parseBase64(text), null, text);
    for (const text of ['0', '01V', 'W0', '01'])
      assert.equal(encoding.parseBase32Hex(text), null, text);
    for (const text of ['1', 'xx', '0x00']) assert.equal(encoding.parseHex(text), null, text);
    for (const text of ['\\', 'a\\25', '\\256', '\\1x1'])
      assert.equal(encoding.parseString(text), null, text);
  });
});
