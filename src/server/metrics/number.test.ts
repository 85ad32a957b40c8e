import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printCount, printFloat, printNumber } from './number.ts';

const asGo: readonly (readonly [number, string, string])[] = [
  [0, '0', '0.0'],
  [-0, '0', '0.0'],
  [1, '1', '1.0'],
  [-1, '-1', '-1.0'],
  [100, '100', '100.0'],
  [16e3, '16000', '16000.0'],
  [999_999, '999999', '999999.0'],
  [1e6, '1e+06', '1e+06'],
  [-1e6, '-1e+06', '-1e+06'],
  [123_456_789, '1.23456789e+08', '1.23456789e+08'],
  [999_999.5, '999999.5', '999999.5'],
  [0.00025, '0.00025', '0.00025'],
  [0.0001, '0.0001', '0.0001'],
  [0.000015, '1.5e-05', '1.5e-05'],
  [1.7637e9 + 0.5, '1.7637000005e+09', '1.7637000005e+09'],
  [2 ** 64, '1.8446744073709552e+19', '1.8446744073709552e+19'],
  [1e100, '1e+100', '1e+100'],
  [5e-324, '5e-324', '5e-324'],
  [Infinity, '+Inf', '+Inf'],
  [-Infinity, '-Inf', '-Inf'],
  [NaN, 'NaN', 'NaN'],
];

for (const [value, text, float] of asGo) {
  test(`${value} prints as Go prints it: ${text}, as an OpenMetrics float ${float}`, () => {
    assert.equal(printNumber(value), text);
    assert.equal(printFloat(value), float);
  });
}

test('a count has no exponent, however large', () => {
  assert.equal(printCount(1_234_567), '1234567');
  assert.equal(printCount(2 ** 80), '1208925819614629174706176');
});
