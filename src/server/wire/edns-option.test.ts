import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import * as any from '../../../test/fuzz/arbitraries.ts';
import { readOption, writeOption, type OptionContent } from './edns-option.ts';
import { printOption } from './edns-print.ts';
import { parseHex, printHex } from './encoding.ts';
import { OPTION } from './iana.ts';

const rows: readonly (readonly [
  content: OptionContent,
  code: number,
  hex: string,
  text: string,
])[] = [
  [{ kind: 'nsid', id: parseHex('6e7331')! }, 3, '6e7331', 'NSID: 6e 73 31 ("ns1")'],
  [{ kind: 'nsid', id: new Uint8Array(0) }, 3, '', 'NSID:'],
  [
    { kind: 'ecs', address: '192.0.2.0', source: 24, scope: 0 },
    8,
    '00011800c00002',
    'CLIENT-SUBNET: 192.0.2.0/24/0',
  ],
  [
    { kind: 'ecs', address: '2001:db8::', source: 33, scope: 48 },
    8,
    '0002213020010db800',
    'CLIENT-SUBNET: 2001:db8::/33/48',
  ],
  [
    { kind: 'ecs', address: '0.0.0.0', source: 0, scope: 0 },
    8,
    '00010000',
    'CLIENT-SUBNET: 0.0.0.0/0/0',
  ],
  [
    { kind: 'cookie', client: parseHex('0102030405060708')!, server: new Uint8Array(0) },
    10,
    '0102030405060708',
    'COOKIE: 0102030405060708',
  ],
  [{ kind: 'keepalive', timeout: 300 }, 11, '012c', 'TCP KEEPALIVE: 30.0 secs'],
  [{ kind: 'keepalive', timeout: null }, 11, '', 'TCP KEEPALIVE:'],
  [{ kind: 'padding', length: 3 }, 12, '000000', 'PAD: (3 bytes)'],
  [{ kind: 'ede', code: 15, text: '' }, 15, '000f', 'EDE: 15 (Blocked)'],
  [
    { kind: 'ede', code: 22, text: 'no route' },
    15,
    '00166e6f20726f757465',
    'EDE: 22 (No Reachable Authority): (no route)',
  ],
  [{ kind: 'ede', code: 4711, text: '' }, 15, '1267', 'EDE: 4711'],
  [
    { kind: 'expire', seconds: 694861 },
    9,
    '000a9a4d',
    'EXPIRE: 694861 (1 week 1 day 1 hour 1 minute 1 second)',
  ],
  [{ kind: 'dau', algorithms: [8, 13] }, 5, '080d', 'DAU: 8 13'],
  [{ kind: 'key-tag', tags: [19036, 20326] }, 14, '4a5c4f66', 'KEY-TAG: 19036, 20326'],
  [
    { kind: 'other', code: 65001, data: parseHex('0061')! },
    65001,
    '0061',
    'OPT=65001: 00 61 (".a")',
  ],
];

describe('EDNS options', () => {
  for (const [content, code, hex, text] of rows) {
    test(`${text} is the same as text, object and bytes`, () => {
      const option = { code, data: parseHex(hex)! };
      assert.deepEqual(readOption(option), content);
      assert.deepEqual(writeOption(content), option);
      assert.equal(printOption(option), text);
    });
  }

  test('malformed options are represented as bytes', () => {
    const broken: readonly (readonly [number, string])[] = [
      [OPTION.ECS, '0001'],
      [OPTION.ECS, '00011800c0000201'],
      [OPTION.ECS, '00011700c00003'],
      [OPTION.ECS, '00030800c0'],
      [OPTION.ECS, '00012100c000020101'],
      [OPTION.COOKIE, '01020304050607'],
      [OPTION.COOKIE, '010203040506070809'],
      [OPTION.KEEPALIVE, '01'],
      [OPTION.PADDING, '0001'],
      [OPTION.EDE, '00'],
      [OPTION.EDE, '000fff'],
      [OPTION.EXPIRE, '000001'],
      [OPTION.KEYTAG, '000001'],
    ];
    for (const [code, hex] of broken) {
      const option = { code, data: parseHex(hex)! };
      assert.deepEqual(readOption(option), { kind: 'other', code, data: option.data });
      assert.match(printOption(option), new RegExp(printHex(option.data.subarray(0, 1))));
    }
  });

  test('any option that is read can be written back unchanged', () => {
    fc.assert(
      fc.property(any.edns, ({ options }) => {
        for (const option of options) {
          assert.deepEqual(writeOption(readOption(option)), option);
          assert.equal(typeof printOption(option), 'string');
        }
      }),
      { numRuns: 500 },
    );
  });
});
