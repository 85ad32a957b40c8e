import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { commonSuffix } from './refused.ts';

describe('the labels that two names end in', () => {
  for (const [one, other, suffix] of [
    ['a.corp.example.', 'b.corp.example.', 'corp.example.'],
    ['corp.example.', 'b.corp.example.', 'corp.example.'],
    ['xcorp.example.', 'corp.example.', 'example.'],
    ['a.', 'b.', ''],
    ['a', 'b', ''],
    ['a.cut', 'b.short', ''],
    ['', 'b.', ''],
  ] as const)
    test(`${one || 'an empty name'} and ${other} share ${suffix || 'none'}`, () => {
      assert.equal(commonSuffix(one, other), suffix);
    });
});
