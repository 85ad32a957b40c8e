import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { printElapsed, printSpan } from './elapsed.ts';

/** Parses printed text back into milliseconds. */
function read(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?) (ms|s)$/.exec(text)!;
  return Number(number) * (unit === 's' ? 1000 : 1);
}

const time = fc.double({ min: 0, max: 1e7, noNaN: true });

test('a printed time is within half a unit of its last digit', () => {
  fc.assert(
    fc.property(time, (ms) => {
      const off = Math.abs(read(printElapsed(ms)) - ms);
      assert.ok(off <= Math.max(0.0501, ms * 0.0501), `${ms} is ${printElapsed(ms)}`);
    }),
    { numRuns: 10_000 },
  );
});

test('a longer time never prints as a shorter one', () => {
  fc.assert(
    fc.property(time, time, (one, other) => {
      const [shorter, longer] = [Math.min(one, other), Math.max(one, other)];
      assert.ok(read(printElapsed(shorter)) <= read(printElapsed(longer)));
    }),
    { numRuns: 10_000 },
  );
});

test('a measured time below 100 seconds has at most three digits', () => {
  for (const [ms, text] of [
    [0, '0 ms'],
    [0.44, '0.4 ms'],
    [9.94, '9.9 ms'],
    [20.4, '20 ms'],
    [999.4, '999 ms'],
    [999.5, '1.00 s'],
    [5000, '5.00 s'],
    [9994, '9.99 s'],
    [9995, '10.0 s'],
    [61_234, '61.2 s'],
  ] as const)
    assert.equal(printElapsed(ms), text);
});

test('a configured time prints as configured', () => {
  fc.assert(
    fc.property(fc.nat(86_400_000), (ms) => {
      assert.ok(Math.abs(read(printSpan(ms)) - ms) < 1e-6);
    }),
  );
  assert.equal(printSpan(5000), '5 s');
  assert.equal(printSpan(250), '0.25 s');
});
