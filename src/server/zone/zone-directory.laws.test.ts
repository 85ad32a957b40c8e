import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseName, suffixAt } from '../wire/name.ts';
import { ZoneDirectory } from './zone-directory.ts';

const label = fc.constantFrom('a', 'b', 'bb', 'example');
const name = fc.array(label, { maxLength: 4 }).map((labels) => `${labels.join('.')}.`);
const steps = fc.array(fc.record({ zone: name, gone: fc.boolean() }), { maxLength: 20 });

describe('many zones', () => {
  test('property: a name is in the existing zone with the longest origin, whichever zones were added and removed', () => {
    fc.assert(
      fc.property(steps, name, fc.boolean(), (changes, asked, above) => {
        const zones = new ZoneDirectory<{ readonly origin: Uint8Array; readonly turn: number }>();
        const model = new Map<string, number>();
        for (const [turn, { zone, gone }] of changes.entries()) {
          const origin = parseName(zone);
          if (gone) {
            zones.delete(origin);
            model.delete(zone);
          } else {
            zones.put({ origin, turn });
            model.set(zone, turn);
          }
        }
        const wire = parseName(asked);
        const [best] = [...model]
          .filter(([zone]) => suffixAt(wire, parseName(zone)) >= 0 && !(above && zone === asked))
          .toSorted(([a], [b]) => parseName(b).length - parseName(a).length);
        assert.equal(zones.find(wire, wire.length, above)?.turn, best?.[1]);
        const turns = new Set([...zones.all()].map(({ turn }) => turn));
        assert.deepEqual(turns, new Set(model.values()));
      }),
    );
  });
});
