import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { makeQuery } from '../../wire/query.ts';
import { foldName, parseName, type WireName } from '../../wire/name.ts';
import { readEntries } from './entries.ts';
import { HostsLookup, packTable } from './table.ts';

/** Few labels, so that names meet. */
const label = fc.constantFrom('a', 'b', 'Ab', '*', 'c\\.d');
const name = fc
  .array(label, { minLength: 1, maxLength: 3 })
  .map((labels) => `${labels.join('.')}.`);
const address = fc.constantFrom('10.0.0.1', '10.0.0.2', '2001:db8::1', '::ffff:10.0.0.3');
const line = fc.tuple(address, fc.array(name, { minLength: 1, maxLength: 3 }));

const key = (wire: WireName): string => Buffer.from(foldName(wire)).toString('latin1');
const bytesOf = (lookup: HostsLookup): number[][] => [
  [...lookup.data.subarray(lookup.v4At, lookup.v6At)],
  [...lookup.data.subarray(lookup.v6At, lookup.pointersAt)],
];

test('the packed table finds the exact entry, else the wildcard beside it, else nothing', () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), name, (lines, asked) => {
      const text = lines.map(([ip, names]) => `${ip} ${names.join(' ')}`).join('\n');
      const entries = readEntries([text], () => true, true);
      const wire = parseName(asked);
      const beside = `\x01*${key(wire).slice(wire[0]! + 1)}`;
      const exact = entries.byName.get(key(wire));
      const expected = exact ?? entries.byName.get(beside);
      const lookup = new HostsLookup(packTable(entries));
      assert.equal(lookup.find(makeQuery(wire, 1)), expected !== undefined);
      if (expected === undefined) return;
      assert.equal(lookup.wild, exact === undefined);
      assert.deepEqual(bytesOf(lookup), [
        [...Buffer.from(expected.v4.join(''), 'latin1')],
        [...Buffer.from(expected.v6.join(''), 'latin1')],
      ]);
    }),
  );
});
