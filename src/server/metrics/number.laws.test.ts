import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { printFloat, printNumber } from './number.ts';

test('every printed number parses back to itself', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      // Minus zero prints as zero. Adding zero makes the two equal.
      assert.equal(Number(printNumber(value)) + 0, value + 0);
      assert.equal(Number(printFloat(value)) + 0, value + 0);
    }),
  );
});

test('an OpenMetrics float always has a point or an exponent', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true })),
      (n) => {
        assert.match(printFloat(n), /[.e]/);
      },
    ),
  );
});
