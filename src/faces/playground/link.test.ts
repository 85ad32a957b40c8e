import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseHash } from '../web/hash-state.ts';
import { playgroundLink } from './link.ts';

describe('links to the playground', () => {
  test('contain the tool and its inputs after #', () => {
    assert.equal(
      playgroundLink('https://example.com/playground/', 'lookup', { name: 'web.shop' }),
      'https://example.com/playground/#lookup?name=web.shop',
    );
  });

  test('carry any text', () => {
    const before = '.:53 {\n    template IN A "a+b&c=d#%" {\n    }\n}\n';
    const link = playgroundLink('', 'diff', { before, after: '' });
    const { page, parameters } = parseHash(link);
    assert.equal(page, 'diff');
    assert.deepEqual(
      [...parameters],
      [
        ['before', before],
        ['after', ''],
      ],
    );
  });

  test('without inputs contain only the tool', () => {
    assert.equal(playgroundLink('', 'capture', {}), '#capture');
  });
});
