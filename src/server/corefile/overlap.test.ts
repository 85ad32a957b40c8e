import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { read } from '../../../test/corefiles/read.ts';
import { overlapProblems } from './overlap.ts';

interface Extra {
  readonly binds?: readonly string[];
  readonly hasView?: boolean;
}

/** Parses the blocks in a Corefile, each with its binds and views in order. */
function problems(text: string, ...extras: Extra[]): string[] {
  const claims = read(text).corefile.blocks.map(({ keys }, at) => ({
    keys,
    binds: extras[at]?.binds ?? [],
    hasView: extras[at]?.hasView ?? false,
  }));
  return overlapProblems(claims).map(({ message }) => message);
}

describe('server blocks that claim the same', () => {
  test('zone, port and scheme are rejected', () => {
    assert.deepEqual(problems('example.org {\n}\nExample.ORG:53 {\n}'), [
      'cannot serve dns://example.org.:53 - it is already defined',
    ]);
  });

  test('key twice in one block are rejected', () => {
    assert.deepEqual(problems('a a'), ['cannot serve dns://a.:53 - it is already defined']);
  });

  test('zone on other ports or schemes are allowed', () => {
    assert.deepEqual(problems('a {\n}\na:54 {\n}\ntls://a {\n}\ntls://a:53 {\n}'), []);
  });

  test('zone are allowed on different addresses, but not on the same one', () => {
    const [one, two] = [{ binds: ['127.0.0.1'] }, { binds: ['::1', '127.0.0.2'] }];
    assert.deepEqual(problems('a {\n}\na {\n}', one, two), []);
    assert.deepEqual(problems('a {\n}\na {\n}', one, one), [
      'cannot serve dns://a.:53 on 127.0.0.1 - it is already defined',
    ]);
  });

  test('zone overlap if one is bound and the other is not, in either order', () => {
    const bound = { binds: ['127.0.0.1'] };
    assert.deepEqual(problems('a {\n}\na {\n}', bound), [
      'cannot serve dns://a.:53 - zone overlap listener capacity with dns://a.:53 on 127.0.0.1',
    ]);
    assert.deepEqual(problems('a {\n}\na {\n}', {}, bound), [
      'cannot serve dns://a.:53 on 127.0.0.1 - zone overlap listener capacity with dns://a.:53',
    ]);
  });

  test('zone with views share it, also with one block that has none', () => {
    const view = { hasView: true };
    assert.deepEqual(problems('a {\n}\na {\n}\na {\n}', view, view), []);
    assert.deepEqual(problems('a {\n}\na {\n}', {}, view), []);
  });

  test('zone as names and as a CIDR are detected', () => {
    assert.deepEqual(problems('10.in-addr.arpa {\n}\n10.0.0.0/8 {\n}'), [
      'cannot serve dns://10.in-addr.arpa.:53 - it is already defined',
    ]);
  });
});
