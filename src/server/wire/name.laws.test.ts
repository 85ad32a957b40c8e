import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import * as any from '../../../test/fuzz/arbitraries.ts';
import {
  foldName,
  joinNames,
  NameError,
  nameLength,
  parseName,
  printLabel,
  printName,
  ROOT,
  suffixAt,
} from './name.ts';

describe('laws of names', () => {
  test('a printed name parses back, whatever bytes it contains', () => {
    fc.assert(
      fc.property(any.wireName, (name) => assert.deepEqual(parseName(printName(name)), name)),
      { numRuns: 500 },
    );
  });

  test('a name prints the same wherever it is in a buffer', () => {
    fc.assert(
      fc.property(any.wireName, fc.nat({ max: 40 }), (name, before) => {
        const bytes = new Uint8Array(before + name.length + 3).fill(7);
        bytes.set(name, before);
        let text = name[0] === 0 ? '.' : '';
        for (let at = 0; name[at]! > 0; at += name[at]! + 1)
          text += `${printLabel(name, at + 1, at + 1 + name[at]!)}.`;
        assert.equal(printName(bytes, before), text);
      }),
    );
  });

  test('printed names are printable ASCII without blanks', () => {
    fc.assert(fc.property(any.wireName, (name) => assert.match(printName(name), /^[!-~]+$/)));
  });

  test('any text is a name of at most 255 bytes or a NameError', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.string({ unit: 'grapheme', maxLength: 300 })),
        (text) => {
          try {
            const name = parseName(text);
            assert.ok(name.length <= 255);
            assert.equal(nameLength(name), name.length);
            assert.deepEqual(parseName(printName(name)), name);
          } catch (error) {
            if (!(error instanceof NameError)) throw error;
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  test('folding changes only case and is idempotent', () => {
    fc.assert(
      fc.property(any.wireName, (name) => {
        assert.equal(foldName(name).length, name.length);
        assert.deepEqual(foldName(foldName(name)), foldName(name));
        assert.equal(printName(foldName(name)), printName(name).toLowerCase());
      }),
    );
  });

  test('a joined name is its prefix followed by its suffix', () => {
    fc.assert(
      fc.property(any.wireName, any.wireName, (prefix, suffix) => {
        const joined = joinNames(prefix, suffix);
        if (joined === null) {
          assert.ok(prefix.length + suffix.length - 1 > 255);
          return;
        }
        assert.equal(suffixAt(joined, suffix), prefix.length - 1);
        assert.equal(suffixAt(joined, ROOT), joined.length - 1);
      }),
    );
  });
});
