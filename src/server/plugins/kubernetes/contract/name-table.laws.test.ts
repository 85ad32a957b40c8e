import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { NameTable, type Named } from './name-table.ts';

const step = fc.record({
  add: fc.boolean(),
  name: fc.constantFrom('a', 'b', 'web', 'web-0', 'Mixed', 'x'.repeat(63)),
  parent: fc.integer({ min: 0, max: 12 }),
});

test('a name table finds added names by folded bytes and by text until they are removed', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const table = new NameTable<Named>();
      const model = new Map<string, Named>();
      for (const { add, name, parent } of steps) {
        const key = `${parent}/${name}`;
        const known = model.get(key);
        if (add && known === undefined) {
          const thing = { name, parent };
          model.set(key, thing);
          table.add(thing);
        } else if (!add && known !== undefined) {
          model.delete(key);
          table.remove(known);
        }
      }
      assert.equal(table.size, model.size);
      assert.deepEqual(new Set(table.values()), new Set(model.values()));
      for (const { name, parent } of steps) {
        const wanted = model.get(`${parent}/${name}`) ?? null;
        const bytes = Buffer.from(`.${name.toLowerCase()}.`);
        assert.equal(table.find(bytes, 1, name.length, parent), wanted);
        assert.equal(table.get(name, parent), wanted);
      }
    }),
    { numRuns: 200 },
  );
});
