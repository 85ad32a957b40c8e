import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseAddress, plainAddress, printAddress } from './ip.ts';

test('zeros in front of the numbers of an IPv4 address say nothing, and IPv4 in IPv6 is IPv4', () => {
  for (const [written, plain] of [
    ['010.009.000.006', '10.9.0.6'],
    ['10.9.0.06', '10.9.0.6'],
    ['000.000.000.000', '0.0.0.0'],
    ['::ffff:10.9.0.6', '10.9.0.6'],
    ['::FFFF:a09:6', '10.9.0.6'],
    ['0:0:0:0:0:ffff:10.9.0.6', '10.9.0.6'],
    ['::ffff:0:10.9.0.6', '::ffff:0:10.9.0.6'],
    ['fd00::1', 'fd00::1'],
    ['None', 'None'],
    ['', ''],
  ] as const) {
    assert.equal(plainAddress(written), plain, written);
  }
});

test('an address in its usual form stays as it is', () => {
  const address = fc
    .oneof(fc.ipV4(), fc.ipV6())
    .map((text) => printAddress(parseAddress(text)!))
    .filter((text) => !text.startsWith('::ffff:'));
  fc.assert(fc.property(address, (text) => assert.equal(plainAddress(text), text)));
});
