import assert from 'node:assert/strict';
import { test } from 'node:test';
import { programmingBuckets, sizeBuckets, slimBuckets, timeBuckets } from './buckets.ts';
import { printNumber } from './number.ts';

test('time buckets have the le labels that CoreDNS dashboards expect', () => {
  assert.equal(
    timeBuckets.map(printNumber).join(' '),
    '0.00025 0.0005 0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192',
  );
});

test('slim buckets range from a quarter of a millisecond to two and a half seconds', () => {
  assert.equal(slimBuckets.map(printNumber).join(' '), '0.00025 0.0025 0.025 0.25 2.5');
});

test('size buckets have the le labels that CoreDNS dashboards expect', () => {
  assert.equal(
    sizeBuckets.map(printNumber).join(' '),
    '0 100 200 300 400 511 1023 2047 4095 8291 16000 32000 48000 64000',
  );
});

test('programming buckets range from a millisecond to almost nine minutes', () => {
  assert.equal(programmingBuckets.length, 20);
  assert.equal(programmingBuckets[0], 0.001);
  assert.equal(programmingBuckets.at(-1), 524.288);
});
