import assert from 'node:assert/strict';
import { test } from 'node:test';
import { percent, share } from './texts.ts';

test('a share that is not zero is not printed as zero', () => {
  assert.equal(percent(3, 9026), '<0.1 %');
  assert.equal(share(3, 9026), '3 of 9026 (<0.1 %)');
  assert.equal(percent(0, 9026), '0 %');
  assert.equal(percent(1, 1000), '0.1 %');
  assert.equal(percent(35, 1000), '3.5 %');
  assert.equal(percent(12, 100), '12 %');
});
