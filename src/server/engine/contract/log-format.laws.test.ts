import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { printSeconds } from './log-format.ts';

test('a duration is printed with all its nanoseconds and no trailing zeros', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 20_000 }),
      fc.nat({ max: 999_999 }),
      (ms, nanoseconds) => {
        const elapsed = ms + nanoseconds / 1e6;
        const whole = Math.round(elapsed * 1e6);
        const text = `${Math.floor(whole / 1e9)}.${String(whole % 1e9).padStart(9, '0')}`;
        let end = text.length;
        while (text[end - 1] === '0') end--;
        if (text[end - 1] === '.') end--;
        assert.equal(printSeconds(elapsed), `${text.slice(0, end)}s`);
      },
    ),
  );
});
