import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseAddress } from '../../base/ip.ts';
import { makeQuery } from '../../transport/query.ts';
import { foldName, nameLength, parseName, printName, type WireName } from '../../wire/name.ts';
import { HostsBuilder } from './builder.ts';
import { readEntry } from './entries.ts';
import { HostsLookup } from './hosts-table.ts';

/** Few labels, so that names coincide. */
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

/** A simple model of the names, using their lower-case wire form as text for the key. */
function modelOf(
  lines: readonly (readonly [string, readonly string[]])[],
): Map<string, string[][]> {
  const model = new Map<string, string[][]>();
  for (const [ip, names] of lines)
    for (const text of names) {
      const owner = key(parseName(text));
      const lists = model.get(owner) ?? [[], []];
      model.set(owner, lists);
      const bytes = parseAddress(ip.replace('::ffff:', ''))!;
      const list = lists[bytes.length === 4 ? 0 : 1]!;
      if (!list.includes(bytes.join())) list.push(bytes.join());
    }
  return model;
}

test('the table finds the exact entry, otherwise the sibling wildcard, otherwise nothing', () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 40 }), name, (lines, asked) => {
      const builder = new HostsBuilder();
      for (const [ip, names] of lines)
        readEntry(`${ip} ${names.join(' ')}`, { wanted: () => true, reverse: true }, builder);
      const wire = parseName(asked);
      const beside = `\x01*${key(wire).slice(wire[0]! + 1)}`;
      const model = modelOf(lines);
      const exact = model.get(key(wire));
      const expected = exact ?? model.get(beside);
      const lookup = new HostsLookup(builder.build());
      assert.equal(lookup.find(makeQuery(wire, 1)), expected !== undefined);
      if (expected === undefined) return;
      assert.equal(lookup.wild, exact === undefined);
      assert.deepEqual(
        bytesOf(lookup),
        expected.map((list) => list.flatMap((bytes) => bytes.split(',').map(Number))),
      );
    }),
  );
});

test('an address has the names given to it, in order, except wildcards', () => {
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 40 }), (lines) => {
      const builder = new HostsBuilder();
      for (const [ip, names] of lines)
        readEntry(`${ip} ${names.join(' ')}`, { wanted: () => true, reverse: true }, builder);
      const names = lines
        .filter(([ip]) => ip === '10.0.0.1')
        .flatMap(([, each]) => each.map((text) => printName(foldName(parseName(text)))))
        .filter((text) => !text.startsWith('*.'));
      const lookup = new HostsLookup(builder.build());
      const found = lookup.find(makeQuery(parseName('1.0.0.10.in-addr.arpa.'), 12));
      assert.equal(found, names.length > 0);
      if (!found) return;
      const printed: string[] = [];
      for (let i = 0, at = lookup.pointersAt; i < lookup.pointerCount; i++) {
        printed.push(printName(lookup.data, at));
        at += nameLength(lookup.data, at);
      }
      assert.deepEqual(printed, [...new Set(names)]);
    }),
  );
});
