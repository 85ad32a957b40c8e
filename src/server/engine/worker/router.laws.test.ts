import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseName, printName, foldName, joinNames, suffixAt } from '../../wire/name.ts';
import { makeQuery, type Query } from '../../transport/query.ts';
import { failure } from '../../wire/reply.ts';
import { ZoneTable, type RoutedBlock } from './router.ts';

const label = fc.stringMatching(/^[a-cA-C]{1,3}$/);
const name = fc
  .array(label, { maxLength: 4 })
  .map((labels) => `${labels.join('.')}.`.replace(/^\.$/, '.'));

function served(zone: string, index: number, filters: RoutedBlock['filters'] = []): RoutedBlock {
  return {
    zone: parseName(zone),
    route: { index, server: 'dns://:53', zone, view: '' },
    chain: () => failure(0, 'x'),
    filters,
  };
}

describe('choice of the server block', () => {
  test('it is the one with the longest zone that contains the name, ignoring case', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(name, { maxLength: 6, selector: (zone) => zone.toLowerCase() }),
        name,
        (zones, asked) => {
          const table = new ZoneTable(zones.map((zone, index) => served(zone, index)));
          const query = makeQuery(parseName(asked), 1);
          const fits = zones
            .filter((zone) => suffixAt(foldName(parseName(asked)), foldName(parseName(zone))) >= 0)
            .toSorted((a, b) => parseName(b).length - parseName(a).length);
          assert.equal(table.match(query)?.route.zone, fits[0]);
        },
      ),
    );
  });

  test('a DS question at the apex of a zone goes to the block for the parent zone, if there is one', () => {
    const both = new ZoneTable([served('example.org.', 0), served('org.', 1)]);
    const alone = new ZoneTable([served('example.org.', 0)]);
    const ds = makeQuery(parseName('example.org.'), 43);
    assert.equal(both.match(ds)?.route.zone, 'org.');
    assert.equal(alone.match(ds)?.route.zone, 'example.org.');
    assert.equal(
      both.match(makeQuery(parseName('a.example.org.'), 43))?.route.zone,
      'example.org.',
    );
  });

  test('blocks with views are tried top to bottom, then shorter zones', () => {
    const tcpOnly = (query: Query): boolean => query.proto === 'tcp';
    const table = new ZoneTable([
      served('a.', 0, [tcpOnly]),
      served('a.', 1, [() => false]),
      served('.', 2),
    ]);
    const query = makeQuery(parseName('x.a.'), 1);
    assert.equal(table.match(query)?.route.index, 2);
    query.proto = 'tcp';
    assert.equal(table.match(query)?.route.index, 0);
  });

  test('a name outside all zones has no block', () => {
    assert.equal(new ZoneTable([served('a.', 0)]).match(makeQuery(parseName('b.'), 1)), null);
  });

  test('a name with any bytes is matched by bytes, not by text', () => {
    const zone = parseName('a\\.b.c.');
    const table = new ZoneTable([{ ...served('.', 0), zone }]);
    const inside = joinNames(parseName('x.'), zone)!;
    assert.notEqual(table.match(makeQuery(inside, 1)), null);
    assert.equal(table.match(makeQuery(parseName('x.a.b.c.'), 1)), null);
    assert.equal(printName(foldName(zone)), 'a\\.b.c.');
  });
});
