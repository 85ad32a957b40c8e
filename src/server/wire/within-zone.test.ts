import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { commonZone, isBelow, isWithin } from './within-zone.ts';

describe('a name as text', () => {
  test('is in a zone only at a label boundary, and a zone is not below itself', () => {
    assert.ok(isBelow('www.example.org.', 'example.org.'));
    assert.ok(!isBelow('wwwexample.org.', 'example.org.'));
    assert.ok(!isBelow('example.org.', 'example.org.'));
    assert.ok(isWithin('example.org.', 'example.org.'));
    assert.ok(isBelow('web.shop.svc', 'svc'));
  });

  test('is below the root, unless it is the root', () => {
    assert.ok(isBelow('org.', '.'));
    assert.ok(!isBelow('.', '.'));
    assert.ok(isWithin('.', '.'));
    assert.ok(!isWithin('.', 'org.'));
  });
});

describe('the common zone of two names', () => {
  for (const [one, other, zone] of [
    ['a.corp.example.', 'b.corp.example.', 'corp.example.'],
    ['corp.example.', 'b.corp.example.', 'corp.example.'],
    ['xcorp.example.', 'corp.example.', 'example.'],
    ['a.', 'b.', ''],
    ['a', 'b', ''],
    ['a.cut', 'b.short', ''],
    ['', 'b.', ''],
  ] as const)
    test(`${one || 'an empty name'} and ${other} have ${zone || 'none'}`, () => {
      assert.equal(commonZone(one, other), zone);
    });
});
