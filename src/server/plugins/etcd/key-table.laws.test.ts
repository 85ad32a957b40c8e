import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { KeyTable } from './key-table.ts';

/** A small set of keys, so that they repeat. They are at all depths, so that ranges vary in length. */
const key = fc.array(fc.constantFrom('a', 'b', 'b-', '\u00ff'), { maxLength: 4 }).map((parts) => {
  return parts.map((part) => `/${part}`).join('');
});
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('set' as const), key }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('delete' as const), key }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('retain' as const),
      keys: fc.uniqueArray(key, { maxLength: 60 }),
    }),
  },
);

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** Applies these steps to a table and a map, and returns both. */
function played(steps: readonly Step[], chunkMax: number) {
  const table = new KeyTable(chunkMax);
  const model = new Map<string, string>();
  for (const [index, one] of steps.entries()) {
    if (one.kind === 'retain') {
      const gone = [...model].filter(([known]) => !one.keys.includes(known)).toSorted(byKey);
      assert.deepEqual(table.retain(one.keys.toSorted()), gone);
      for (const [known] of gone) model.delete(known);
      continue;
    }
    const before = model.get(one.key) ?? null;
    assert.equal(table.get(one.key), before);
    if (one.kind === 'set') {
      assert.equal(table.set(one.key, String(index)), before);
      model.set(one.key, String(index));
    } else {
      assert.equal(table.delete(one.key), before);
      model.delete(one.key);
    }
  }
  return { table, sorted: [...model].toSorted(byKey) };
}

function byKey([a]: readonly [string, string], [b]: readonly [string, string]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const steps = fc.array(step, { maxLength: 300 });
const chunkMax = fc.integer({ min: 2, max: 9 });

describe('a table of keys', () => {
  test('has the same content as a map, in order', () => {
    fc.assert(
      fc.property(steps, chunkMax, (all, most) => {
        const { table, sorted } = played(all, most);
        assert.equal(table.size, sorted.length);
        assert.deepEqual([...table.entries()], sorted);
      }),
    );
  });

  test('returns the same ranges as a sorted list', () => {
    fc.assert(
      fc.property(steps, chunkMax, key, key, (all, most, one, other) => {
        const [from, to] = one < other ? [one, other] : [other, one];
        const { table, sorted } = played(all, most);
        const stretch = table.range(from, to, Infinity);
        const inside = sorted.filter(([known]) => from <= known && known < to);
        assert.deepEqual(pairs(stretch), inside);
        const part = pairs(table.range(from, to, 3));
        assert.deepEqual(part, inside.slice(0, part.length));
        assert.ok(part.length > 3 || part.length === inside.length);
      }),
    );
  });

  test('continues after the last key if others are added and removed during iteration', () => {
    fc.assert(
      fc.property(steps, chunkMax, steps, (all, most, later) => {
        const { table } = played(all, most);
        const seen: string[] = [];
        const rest = [...later];
        const always = new Set([...table.entries()].map(([known]) => known));
        for (const [known] of table.entries()) {
          seen.push(known);
          const change = rest.pop();
          if (change?.kind === 'set') table.set(change.key, 'new');
          if (change?.kind === 'delete') {
            table.delete(change.key);
            always.delete(change.key);
          }
        }
        assert.deepEqual(seen, [...new Set(seen)].toSorted());
        for (const known of always) assert.ok(seen.includes(known));
      }),
    );
  });
});

function pairs({ keys, values, from, to }: ReturnType<KeyTable['range']>): [string, string][] {
  return keys.slice(from, to).map((known, i) => [known, values[from + i]!]);
}
