import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { samplesOf } from './pattern-samples.ts';

describe('samples of an expression fit it', () => {
  for (const pattern of [
    '^api\\.example\\.org\\.$',
    '(foo|bar)-[a-z]+\\.(svc|pod)\\.cluster\\.local',
    '^(?:[^.]+\\.){4,}internal\\.cloudapp\\.net\\.$',
    '^ip-(?P<a>[0-9]{1,3})-(?P<b>\\d+)[.]example[.]org[.]$',
    '(?i)^WEB.*$',
    'a?b*c+d{2}',
    '[^a-z]x[]]',
  ])
    test(pattern, () => {
      const samples = samplesOf(pattern);
      assert.ok(samples.length > 0);
      const own = new RegExp(
        pattern
          .replace(/\(\?i\)/, '')
          .replaceAll('?P<', '?<')
          .replace('[]]', '\\]'),
        'i',
      );
      for (const sample of samples) assert.match(sample, own);
    });

  test('an unsupported expression has no samples', () => {
    for (const pattern of ['(', '[a', '*a', '(?=x)', 'a)'])
      assert.deepEqual(samplesOf(pattern), []);
  });

  test('any text terminates, with few samples', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'ab.()[]|*+?{}2,\\^$'.split('')), maxLength: 60 }),
        (text) => {
          assert.ok(samplesOf(text).length <= 12);
        },
      ),
    );
  });
});
