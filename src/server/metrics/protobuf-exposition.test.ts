import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessageReader, WIRE } from '../base/protobuf.ts';
import { timeBuckets } from './buckets.ts';
import { Collection } from './collection.ts';
import { NativeRange } from './native.ts';
import { type RegistryOptions, SharedRegistry } from './shared-registry.ts';

type Fields = ReadonlyMap<number, readonly (number | Buffer)[]>;

/** Decodes a message's fields by number, each with its values. */
function fieldsOf(bytes: Buffer): Fields {
  const fields = new Map<number, (number | Buffer)[]>();
  const reader = new MessageReader();
  for (reader.over(bytes); reader.next();) {
    const list = fields.get(reader.field) ?? [];
    fields.set(reader.field, list);
    if (reader.kind === WIRE.varint) list.push(reader.number());
    else list.push(reader.kind === WIRE.fixed64 ? reader.double() : reader.bytes());
  }
  return fields;
}

const numberOf = (fields: Fields, field: number): number => Number(fields.get(field)?.[0] ?? 0);
const messagesOf = (fields: Fields, field: number): readonly Fields[] =>
  (fields.get(field) ?? []).map((bytes) => fieldsOf(bytes as Buffer));
const unzigzag = (value: number): number => (value % 2 === 0 ? value / 2 : -(value + 1) / 2);

/** Decodes a packed list of numbers. */
function packed(bytes: Buffer): readonly number[] {
  const numbers: number[] = [];
  for (let at = 0; at < bytes.length; at++) {
    let value = 0;
    let scale = 1;
    for (; bytes[at]! >= 0x80; at++, scale *= 0x80) value += (bytes[at]! & 0x7f) * scale;
    numbers.push(value + bytes[at]! * scale);
  }
  return numbers;
}

/** Returns the families in an exposition by name. */
function familiesOf(bytes: Buffer): ReadonlyMap<string, Fields> {
  const families = new Map<string, Fields>();
  for (let at = 0; at < bytes.length;) {
    let length = 0;
    let scale = 1;
    for (; bytes[at]! >= 0x80; at++, scale *= 0x80) length += (bytes[at]! & 0x7f) * scale;
    length += bytes[at++]! * scale;
    const family = fieldsOf(bytes.subarray(at, at + length));
    families.set(String(family.get(1)![0]), family);
    at += length;
  }
  return families;
}

/** Returns native bucket counts by bucket number. */
function nativeOf(histogram: Fields): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  const deltas = packed((histogram.get(13)?.[0] as Buffer) ?? Buffer.alloc(0)).map(unzigzag);
  let index = 0;
  let count = 0;
  let next = 0;
  for (const span of messagesOf(histogram, 12)) {
    index += unzigzag(numberOf(span, 1));
    for (let left = numberOf(span, 2); left > 0; left--) {
      count += deltas[next++]!;
      if (count > 0) counts.set(index, count);
      index++;
    }
  }
  assert.equal(next, deltas.length);
  return counts;
}

/** One thread's registry, and the messages in a scrape. */
function makeThread(options?: RegistryOptions): {
  readonly registry: SharedRegistry;
  readonly collection: Collection;
  readonly scrape: () => ReadonlyMap<string, Fields>;
} {
  const collection = new Collection();
  const registry = new SharedRegistry((event) => collection.add('main', event), options);
  return {
    registry,
    collection,
    scrape: () => familiesOf(collection.scrape('protobuf') as Buffer),
  };
}

/** Returns the histogram for each label set in a family, in order. */
const histogramsOf = (family: Fields): readonly Fields[] =>
  messagesOf(family, 4).map((metric) => messagesOf(metric, 7)[0]!);

describe('metrics as protocol buffers', () => {
  test('counters and gauges have their kind, labels and value', () => {
    const { registry, scrape } = makeThread();
    registry.counter('a_total', 'All “of” them.', ['zone', 'server']).with('.', 'dns://:53').add(3);
    registry.gauge('g', 'G.', []).with();
    const families = scrape();
    const counter = families.get('a_total')!;
    assert.equal(String(counter.get(2)![0]), 'All “of” them.');
    assert.equal(numberOf(counter, 3), 0);
    const [metric] = messagesOf(counter, 4);
    const labels = messagesOf(metric!, 1).map((pair) => [
      String(pair.get(1)![0]),
      String(pair.get(2)![0]),
    ]);
    assert.deepEqual(labels, [
      ['server', 'dns://:53'],
      ['zone', '.'],
    ]);
    assert.equal(numberOf(messagesOf(metric!, 3)[0]!, 1), 3);
    const gauge = families.get('g')!;
    assert.equal(numberOf(gauge, 3), 1);
    assert.equal(messagesOf(messagesOf(gauge, 4)[0]!, 2).length, 1, 'a gauge of 0 has a value');
  });

  test('a summary has its quantiles', () => {
    const { collection, scrape } = makeThread();
    const quantiles = new Map([
      [0, 0.1],
      [0.5, 0.2],
    ]);
    collection.sample(() => [
      { name: 's', help: 'S.', kind: 'summary', labels: {}, value: 9, quantiles, count: 4 },
    ]);
    const [metric] = messagesOf(scrape().get('s')!, 4);
    const [summary] = messagesOf(metric!, 4);
    assert.equal(numberOf(summary!, 1), 4);
    assert.equal(numberOf(summary!, 2), 9);
    assert.deepEqual(
      messagesOf(summary!, 3).map((each) => [numberOf(each, 1), numberOf(each, 2)]),
      [
        [0, 0.1],
        [0.5, 0.2],
      ],
    );
  });

  test('a histogram has its own buckets, cumulative, and native ones, sixteen per power of two', () => {
    const { registry, scrape } = makeThread();
    const histogram = registry.histogram('h_seconds', 'H.', [], timeBuckets).with();
    const observed = [0, 1e-9, 0.0004, 0.0004, 0.00041, 0.5, 1, 1, 1.01, 3, 1000];
    for (const value of observed) histogram.observe(value);
    const [read] = histogramsOf(scrape().get('h_seconds')!);
    assert.equal(numberOf(read!, 1), observed.length);
    assert.equal(
      numberOf(read!, 2),
      observed.reduce((sum, value) => sum + value, 0),
    );
    const buckets = messagesOf(read!, 3);
    assert.deepEqual(
      buckets.map((bucket) => numberOf(bucket, 2)),
      [...timeBuckets, Infinity],
    );
    for (const bucket of buckets)
      assert.equal(
        numberOf(bucket, 1),
        observed.filter((value) => value <= numberOf(bucket, 2)).length,
      );
    assert.equal(unzigzag(numberOf(read!, 5)), 4);
    assert.equal(numberOf(read!, 6), 2 ** -20);
    assert.equal(numberOf(read!, 7), 2);
    const range = new NativeRange(timeBuckets);
    const expected = new Map<number, number>();
    for (const value of observed.filter((each) => each > 1e-6)) {
      const index = range.indexOf(range.cellOf(value));
      expected.set(index, (expected.get(index) ?? 0) + 1);
    }
    assert.deepEqual(
      [...nativeOf(read!)],
      [...expected].toSorted(([one], [other]) => one - other),
    );
    assert.equal(expected.get(0), 2);
    assert.equal(expected.get(-16), 1);
  });

  test('native buckets are summed over all threads, including ended ones', () => {
    const { collection, scrape } = makeThread();
    for (const name of ['a', 'b']) {
      const registry = new SharedRegistry((event) => collection.add(name, event));
      registry.histogram('h_seconds', 'H.', [], timeBuckets).with().observe(2);
    }
    collection.retire('a');
    const [read] = histogramsOf(scrape().get('h_seconds')!);
    assert.deepEqual([...nativeOf(read!)], [[16, 2]]);
  });

  test('label sets beyond the limit of native histograms have only their own buckets', () => {
    const { registry, collection, scrape } = makeThread({ natives: 1 });
    const family = registry.histogram('h_seconds', 'H.', ['zone'], timeBuckets);
    family.with('a.').observe(1);
    family.with('b.').observe(1);
    const [first, second] = histogramsOf(scrape().get('h_seconds')!);
    assert.equal(nativeOf(first!).size, 1);
    assert.equal(second!.has(5), false);
    assert.equal(numberOf(second!, 1), 1);
    assert.match(
      collection.print('text'),
      /^ndots_metrics_classic_only_total\{family="h_seconds"\} 1$/m,
    );
    family.remove('a.');
    family.with('c.').observe(1);
    const zones = histogramsOf(scrape().get('h_seconds')!);
    assert.deepEqual(
      zones.map((histogram) => nativeOf(histogram).size),
      [0, 1],
    );
  });
});
