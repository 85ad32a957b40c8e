import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { netHolds, type Net } from './ip.ts';
import { Nets } from './nets.ts';

/** Use only a few distinct bytes, so that prefixes and addresses often match. */
const byte = fc.constantFrom(0, 1, 2, 127, 128, 254, 255);
const address = (length: 4 | 16): fc.Arbitrary<Uint8Array> =>
  fc.array(byte, { minLength: length, maxLength: length }).map((bytes) => Uint8Array.from(bytes));
const net = (length: 4 | 16): fc.Arbitrary<Net> =>
  fc.record({ bytes: address(length), bits: fc.integer({ min: 0, max: 8 * length }) });

for (const length of [4, 16] as const) {
  test(`${length === 4 ? 'IPv4' : 'IPv6'}: an address is contained exactly if one of the prefixes contains it`, () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(net(4), net(16)), { maxLength: 12 }),
        address(length),
        (nets, found) => {
          const expected = nets.some((one) => netHolds(one, found));
          assert.equal(new Nets(nets).holds(found, 0, length), expected);
        },
      ),
    );
  });
}
