import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { costsAtMost } from '../../../../test/kit/growth.ts';
import fc from 'fast-check';
import { netHolds, parseAddress, parseNet } from '../../base/ip.ts';
import { AddressRange, parseSpans } from './address-range.ts';

function allot(range: string, names: readonly string[], fixed: readonly string[] = []): string[] {
  const made = new AddressRange(range);
  made.begin(fixed);
  return names.map((name) => made.take(name)!);
}

describe('addresses by name', () => {
  test('are within the range, differ, and are the same in every run', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('10.96.0.0/12', '10.244.3.7/24', 'fd00:10:96::/108', '2001:db8::/32'),
        fc.uniqueArray(fc.string(), { maxLength: 100 }),
        (range, names) => {
          const addresses = allot(range, names);
          assert.equal(new Set(addresses).size, names.length);
          for (const address of addresses) {
            assert.ok(netHolds(parseNet(range)!, parseAddress(address)!), address);
          }
          assert.deepEqual(allot(range, names), addresses);
        },
      ),
    );
  });

  test('stay when other names come and go, even if they collide', () => {
    const made = new AddressRange('10.0.0.0/24');
    const names = Array.from({ length: 200 }, (_, i) => `name-${i}`);
    made.begin([]);
    const first = new Map(names.map((name) => [name, made.take(name)]));
    made.end();
    made.begin([]);
    const kept = names.filter((_, i) => i % 3 !== 0).reverse();
    for (const name of [...kept, 'new-1', 'new-2']) {
      const address = made.take(name);
      if (first.has(name)) assert.equal(address, first.get(name), name);
    }
    made.end();
  });

  test('are never explicitly chosen ones', () => {
    const [free] = allot('10.0.0.0/24', ['web']);
    assert.notEqual(allot('10.0.0.0/24', ['web'], [free!])[0], free);
  });

  test('change when a service explicitly chooses an assigned one', () => {
    const made = new AddressRange('10.0.0.0/24');
    made.begin([]);
    const before = made.take('web')!;
    made.end();
    made.begin([before]);
    assert.notEqual(made.take('web'), before);
  });

  test('run out, and then there are none', () => {
    const made = new AddressRange('10.0.0.0/29');
    made.begin([]);
    const found = Array.from({ length: 7 }, (_, i) => made.take(`name-${i}`));
    assert.deepEqual(
      new Set(found.slice(0, 6)),
      new Set([1, 2, 3, 4, 5, 6].map((last) => `10.0.0.${last}`)),
    );
    assert.equal(found[6], null);
  });

  test('in an exhausted range are not searched for again and again', async () => {
    const fill = (): AddressRange => {
      const made = new AddressRange('10.0.0.0/20');
      made.begin([]);
      for (let i = 0; i < 4094; i++) made.take(`name-${i}`);
      return made;
    };
    const range = fill();
    const more = (): void => {
      for (let i = 0; i < 1250; i++) assert.equal(range.take(`more-${i}`), null);
    };
    await costsAtMost(2, more, fill);
    range.end();
    range.begin([]);
    assert.notEqual(range.take('name-0'), null);
  });

  test('skip the customary first and tenth addresses, which are assigned on demand', () => {
    const made = new AddressRange('10.0.0.0/24');
    made.begin([]);
    assert.equal(made.take('kubernetes', 1), '10.0.0.1');
    assert.equal(made.take('dns', 10), '10.0.0.10');
    const rest = Array.from({ length: 252 }, (_, i) => made.take(`name-${i}`));
    assert.equal(rest.filter((address) => address !== null).length, 252);
  });
});

test('spans of addresses are written as single ones, from-to, or prefixes', () => {
  assert.deepEqual(parseSpans('172.17.0.4-172.17.0.6'), ['172.17.0.4', '172.17.0.5', '172.17.0.6']);
  assert.deepEqual(parseSpans('10.0.0.255 - 10.0.1.0, fd00::1'), [
    '10.0.0.255',
    '10.0.1.0',
    'fd00::1',
  ]);
  assert.deepEqual(parseSpans('10.0.0.9/30'), ['10.0.0.8', '10.0.0.9', '10.0.0.10', '10.0.0.11']);
  assert.deepEqual(parseSpans('fd00::ffff-fd00::1:0'), ['fd00::ffff', 'fd00::1:0']);
  for (const text of [
    '',
    'x',
    '10.0.0.2-10.0.0.1',
    '10.0.0.1-fd00::1',
    '10.0.0.0/8',
    '::/0',
    '1.2.3.4,',
  ]) {
    assert.equal(parseSpans(text), null, text);
  }
});
