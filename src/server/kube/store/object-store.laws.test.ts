import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  wholeChange,
  wholeFields,
  wholeObject,
  wholeRecords,
  type WholeRecord,
} from '../../../../test/kit/whole-records.ts';
import type { EndpointSlice, KubeObject } from './objects.ts';
import { StringTable, type GoneRecord, type ObjectRecord } from './object-record.ts';
import { ObjectStore } from './object-store.ts';

const word = fc.oneof(
  fc.constantFrom('', 'a', 'web', 'web-1', 'default', 'ndots'),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
);
const record = fc.record(
  {
    kind: fc.constant('Pod' as const),
    namespace: word,
    name: word.filter((name) => name !== ''),
    inline: word,
    shared: word,
    bytes: fc.string({ unit: fc.nat(255).map((byte) => String.fromCharCode(byte)) }),
    number: fc.nat(2 ** 31 - 1),
    pairs: fc.dictionary(
      word.filter((key) => key !== '__proto__'),
      word,
      { noNullPrototype: true },
    ),
  },
  { noNullPrototype: true },
);
const fields = {
  inline: 'text',
  shared: 'shared',
  bytes: 'bytes',
  number: 'number',
  pairs: 'pairs',
} as const;

describe('stored records come back equal', () => {
  for (const isFull of [false, true])
    test(isFull ? 'also when the string table is full' : 'in all forms of fields', () => {
      const strings = new StringTable();
      for (let i = 0; isFull && i < StringTable.limit; i++) strings.id(`word-${i}`);
      fc.assert(
        fc.property(record, word, (made, key) => {
          const store = new ObjectStore<ObjectRecord>('Pod', fields, strings);
          store.put(made.namespace, key, [made], []);
          assert.deepEqual([...store.objects()], [made]);
        }),
      );
    });
});

function wholeStore(): ObjectStore<WholeRecord> {
  return new ObjectStore('EndpointSlice', wholeFields, new StringTable());
}

type Step =
  | { readonly do: 'put'; readonly key: number; readonly size: number; readonly ready: boolean }
  | { readonly do: 'remove'; readonly key: number }
  | { readonly do: 'list'; readonly keys: readonly number[]; readonly complete: boolean };

const key = fc.nat(30);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('put' as const),
    key,
    // Occasionally larger than a chunk.
    size: fc.oneof(
      { weight: 9, arbitrary: fc.nat(60) },
      { weight: 1, arbitrary: fc.constant(9000) },
    ),
    ready: fc.boolean(),
  }),
  fc.record({ do: fc.constant('remove' as const), key }),
  fc.record({
    do: fc.constant('list' as const),
    keys: fc.array(key, { maxLength: 20 }),
    complete: fc.boolean(),
  }),
);

function sliceOf(number: number, size: number, ready: boolean): EndpointSlice {
  return {
    kind: 'EndpointSlice',
    namespace: `ns-${number % 3}`,
    name: `slice-${number}`,
    service: `service-${number}`,
    ports: [],
    endpoints: Array.from({ length: size }, (_, i) => ({
      addresses: [`10.0.${i >> 8}.${i & 255}`],
      ready,
      hostname: '',
      nodeName: '',
      // Each differs from its neighbour, so that a large slice takes a lot of memory.
      pod: `${(i * 7919) % 997}-some-pod`,
      zone: '',
    })),
    triggeredAt: 0,
  };
}

test('after any puts, removals and lists, a store equals a map and has reported exactly the differences', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const store = wholeStore();
      const model = new Map<string, EndpointSlice>();
      const followed = new Map<string, KubeObject>();
      const nameOf = (number: number): [string, string] => [`ns-${number % 3}`, `slice-${number}`];
      for (const one of steps) {
        const before = new Map(model);
        const out: (WholeRecord | GoneRecord)[] = [];
        if (one.do === 'put') {
          const object = sliceOf(one.key, one.size, one.ready);
          store.put(...nameOf(one.key), [wholeRecords.of(object)], out);
          model.set(object.name, object);
        } else if (one.do === 'remove') {
          store.remove(...nameOf(one.key), out);
          model.delete(`slice-${one.key}`);
        } else {
          store.beginList();
          const listed = new Set<string>();
          for (const number of one.keys) {
            const object = model.get(`slice-${number}`) ?? sliceOf(number, 2, true);
            store.put(...nameOf(number), [wholeRecords.of(object)], out);
            model.set(object.name, object);
            listed.add(object.name);
          }
          if (one.complete) {
            store.endList(out);
            for (const name of model.keys()) if (!listed.has(name)) model.delete(name);
          }
        }
        for (const change of out.map(wholeChange)) {
          if (change.verb === 'put') {
            assert.notDeepEqual(change.object, before.get(change.object.name), 'a real change');
            followed.set(change.object.name, change.object);
          } else {
            assert.ok(followed.delete(change.name), 'a real deletion');
          }
        }
      }
      const sorted = (objects: Iterable<KubeObject>): KubeObject[] =>
        [...objects].sort((a, b) => (a.name < b.name ? -1 : 1));
      assert.deepEqual(sorted([...store.objects()].map(wholeObject)), sorted(model.values()));
      assert.deepEqual(sorted(followed.values()), sorted(model.values()));
      assert.equal(store.size, model.size);
    }),
    { numRuns: 150 },
  );
});

test('a store whose objects come and go forever does not grow', () => {
  const store = wholeStore();
  for (let number = 0; number < 1000; number++) {
    store.put('default', `s-${number}`, [wholeRecords.of(sliceOf(number, 50, true))], []);
  }
  const full = store.bytes;
  for (let round = 0; round < 8000; round++) {
    store.remove('default', `s-${round}`, []);
    store.put('default', `s-${round + 1000}`, [wholeRecords.of(sliceOf(round, 50, true))], []);
  }
  assert.equal(store.size, 1000);
  assert.ok(store.bytes < 2 * full, `${store.bytes} bytes, ${full} at first`);
});

test('a slow reader of a pinned store misses nothing that stays', () => {
  const store = wholeStore();
  for (let number = 0; number < 3000; number++) {
    store.put(
      'default',
      `s-${number}`,
      [wholeRecords.of({ ...sliceOf(number, 20, true), name: `s-${number}` })],
      [],
    );
  }
  store.pin();
  const seen = new Set<string>();
  let round = 0;
  for (const object of store.objects()) {
    seen.add(object.name);
    // All odd-numbered ones are removed during the read.
    store.remove('default', `s-${2 * (round++ % 1500) + 1}`, []);
  }
  store.unpin();
  for (let number = 0; number < 3000; number += 2) assert.ok(seen.has(`s-${number}`));
  assert.equal(store.size, 1500);
});
