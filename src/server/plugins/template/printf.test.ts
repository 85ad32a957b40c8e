import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { printFormatted } from './printf.ts';
import type { GoValue } from './go-values.ts';

describe('printf', () => {
  /** Format, values, and the text that Go's fmt.Sprintf returns for them. */
  const cases: readonly (readonly [string, readonly GoValue[], string])[] = [
    ['%s|%v|%d', ['a', 'b', 3n], 'a|b|3'],
    ['%5s|%-5s|', ['a', 'b'], '    a|b    |'],
    [
      '%05d|%+d|% d|%x|%X|%#x|%o|%b|%c|%q|%U',
      [42n, 1n, 2n, 255n, 255n, 255n, 8n, 5n, 65n, 65n, 0x20acn],
      "00042|+1| 2|ff|FF|0xff|10|101|A|'A'|U+20AC",
    ],
    ['%x|%d|%05d', [-255n, -3n, -3n], '-ff|-3|-0003'],
    ['%.3d', [7n], '007'],
    ['%q|%x|%X|% x', ['a"b', 'hi', 'hi', 'hi'], '"a\\"b"|6869|6869|68 69'],
    ['%.2s', ['abc'], 'ab'],
    ['%t|%v', [true, false], 'true|false'],
    [
      '%f|%.2f|%8.3f|%e|%g|%.3g',
      [1.5, 1.456, 3.14159, 1234.5, 0.00001, 1234.5],
      '1.500000|1.46|   3.142|1.234500e+03|1e-05|1.23e+03',
    ],
    ['100%%', [], '100%'],
    ['%*d|%-*d|', [4n, 7n, 4n, 7n], '   7|7   |'],
    ['%d', ['x'], '%!d(string=x)'],
    ['%s', [3n], '%!s(int=3)'],
    ['%d %d', [1n], '1 %!d(MISSING)'],
    ['%d', [1n, 2n, 'x'], '1%!(EXTRA int=2, string=x)'],
    ['%', [], '%!(NOVERB)'],
    ['%z', [1n], '%!z(int=1)'],
    ['%s %v', [null, null], '%!s(<nil>) <nil>'],
    [
      '%v|%s',
      [
        ['a', 'b'],
        ['a', 'b'],
      ],
      '[a b]|[a b]',
    ],
    [
      '%v',
      [
        new Map<string, GoValue>([
          ['b', '2'],
          ['a', '1'],
        ]),
      ],
      'map[a:1 b:2]',
    ],
    ['%T %T %T', ['x', 1n, 1.5], 'string int float64'],
  ];
  for (const [format, values, wanted] of cases)
    test(`${format} outputs ${wanted}`, () => assert.equal(printFormatted(format, values), wanted));

  test('an excessive width is limited', () => {
    assert.ok(printFormatted('%999999999d', [1n]).length <= 1000);
  });
});
