import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { clientLines, findClient } from './clients.ts';
import { Releases, compareVersions } from './releases.ts';

describe('a table of releases', () => {
  const releases = new Releases('x', { a: 1, b: 1 }, [
    ['1.9.0'],
    ['1.9.2', { a: 2 }],
    ['1.10', { b: 2 }],
    ['2.0', { a: 3 }],
    ['2', { b: 3 }],
  ]);
  const pick = (asked: string | null): readonly unknown[] => {
    const { version, traits, note } = releases.pick(asked);
    return [version, traits.a, traits.b, note !== null];
  };

  test('a release has the traits of its row and of earlier rows', () => {
    assert.deepEqual(releases.traitsOf('1.10'), { a: 2, b: 2 });
  });

  test('the default is the newest', () => {
    assert.deepEqual(pick(null), ['2', 3, 3, false]);
  });

  test('a part of a version means the newest that begins with it', () => {
    assert.deepEqual(pick('1.9'), ['1.9.2', 2, 1, false]);
    assert.deepEqual(pick('1'), ['1.10', 2, 2, false]);
  });

  test('a patch of a release is that release, and an exact row takes precedence', () => {
    assert.deepEqual(pick('1.10.7'), ['1.10', 2, 2, false]);
    assert.deepEqual(pick('2.0'), ['2.0', 3, 2, false]);
    assert.deepEqual(pick('2.5'), ['2', 3, 3, false]);
  });

  test('an unknown release is replaced by the last one before it, with a note', () => {
    assert.deepEqual(pick('1.9.1'), ['1.9.0', 1, 1, true]);
    assert.deepEqual(pick('3.1'), ['2', 3, 3, true]);
    assert.deepEqual(pick('0.4'), ['1.9.0', 1, 1, true]);
    assert.match(releases.pick('3.1').note ?? '', /x 3\.1 is unknown: this is 2/);
  });

  test('parts are compared as numbers', () => {
    assert.ok(compareVersions('1.10', '1.9') > 0);
    assert.equal(compareVersions('1.2', '1.2.0'), 0);
  });
});

describe('the tables of the clients', () => {
  for (const { name, versions } of clientLines) {
    test(`${name}: releases are in order`, () => {
      const sorted = versions.toSorted((one, other) => compareVersions(one, other));
      assert.deepEqual(versions, sorted);
    });
  }

  test('a client is found by any version, and by no other word', () => {
    assert.equal(findClient('glibc@2.38')?.version, '2.38');
    assert.equal(findClient('c-ares@1.34')?.version, '1.34.9');
    assert.equal(findClient('go@1.24.4')?.version, '1.24');
    assert.equal(findClient('glibc@9')?.version, '2.43');
    assert.equal(findClient('curl@8.1')?.version, '');
    assert.equal(findClient('glibc@new'), null);
    assert.equal(findClient('glib'), null);
  });
});
