import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { estimate, longestFirst, slowestLines } from './test-times.ts';

describe('times of test files', () => {
  const times = { 'a.test.ts': 10, 'b.test.ts': 200, 'c.test.ts': 30 };

  test('the longest file starts first, after files without a record', () => {
    assert.deepEqual(longestFirst(['a.test.ts', 'c.test.ts', 'new.test.ts', 'b.test.ts'], times), [
      'new.test.ts',
      'b.test.ts',
      'c.test.ts',
      'a.test.ts',
    ]);
  });

  test('an estimate is the recorded time divided by the files that run at once', () => {
    assert.equal(
      estimate(Object.keys(times), { ...times, 'b.test.ts': 320 }, 1),
      '3 files, about 6 minutes (1 at a time)',
    );
  });

  test('an estimate is never shorter than the longest file', () => {
    assert.equal(estimate(Object.keys(times), times, 8), '3 files, about 3 minutes (8 at a time)');
  });

  test('files without a record count as the average of the others', () => {
    assert.equal(
      estimate(['a.test.ts', 'x.test.ts'], times, 1),
      '2 files, about 20 seconds (1 at a time)',
    );
  });

  test('no time is shown if nothing is recorded', () => {
    assert.equal(estimate(['x.test.ts'], times, 2), '1 file, never timed');
  });

  test('the slowest files come first, ten of them at most', () => {
    const many = new Map(Array.from({ length: 12 }, (_, index) => [`${index}.test.ts`, index + 1]));
    const lines = slowestLines(many);
    assert.equal(lines.length, 11);
    assert.equal(lines[0], 'slowest 10 of 12 files (96 % of all test time):');
    assert.equal(lines[1], '   12.0 s  11.test.ts');
  });
});
