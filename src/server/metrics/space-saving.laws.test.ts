import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../base/virtual-clock.ts';
import { Collection } from './collection.ts';
import { SharedRegistry } from './shared-registry.ts';
import { SpaceSaving } from './space-saving.ts';
import { TopKeys } from './top-keys.ts';

const stream = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 400 });
const keyOf = (number: number): Uint8Array => Buffer.from(`key-${number}`);

test('a count is never too low, and too high by at most its error', () => {
  fc.assert(
    fc.property(stream, fc.integer({ min: 1, max: 12 }), (numbers, capacity) => {
      const sketch = new SpaceSaving(capacity, 16);
      const true_ = new Map<string, number>();
      for (const number of numbers) {
        const key = keyOf(number);
        const slot = sketch.add(key, 0, key.length);
        const text = key.toString();
        true_.set(text, (true_.get(text) ?? 0) + 1);
        assert.equal(Buffer.from(sketch.key(slot)).toString(), text);
        assert.equal(sketch.find(key, 0, key.length), slot);
      }
      assert.ok(sketch.size <= capacity);
      let sum = 0;
      const lowest = Math.min(...sketch.top(capacity).map((slot) => sketch.count(slot)));
      for (const slot of sketch.top(capacity)) {
        const real = true_.get(Buffer.from(sketch.key(slot)).toString())!;
        assert.ok(sketch.count(slot) >= real);
        assert.ok(sketch.count(slot) - sketch.error(slot) <= real);
        true_.delete(Buffer.from(sketch.key(slot)).toString());
        sum += sketch.count(slot);
      }
      assert.equal(sum, numbers.length);
      for (const real of true_.values()) assert.ok(real <= lowest);
    }),
  );
});

test('a frequent key keeps its slot through a flood of random ones', () => {
  const sketch = new SpaceSaving(64, 16);
  const popular = Buffer.from('popular');
  for (let i = 0; i < 100_000; i++) {
    const invented = Buffer.from(`invented-${i}`);
    sketch.add(invented, 0, invented.length);
    if (i % 20 === 0) sketch.add(popular, 0, popular.length);
  }
  assert.equal(Buffer.from(sketch.key(sketch.top(1)[0]!)).toString(), 'popular');
});

test('the gauge has at most ten series, with the highest counts, and forgets over time', async () => {
  const clock = new VirtualClock();
  const collection = new Collection();
  const metrics = new SharedRegistry((event) => collection.add('main', event));
  const top = new TopKeys({
    metrics,
    clock,
    name: 'ndots_test_top',
    help: 'For a test.',
    label: 'client',
    width: 16,
    print: (key) => Buffer.from(key).toString(),
  });
  for (let i = 0; i < 40; i++) {
    const key = keyOf(i);
    for (let n = 0; n <= i; n++) top.add(key, 0, key.length);
  }
  assert.equal(top.first, 'key-39');
  await clock.advance(10_000);
  const series = (): readonly string[] =>
    collection
      .print('text')
      .split('\n')
      .filter((line) => line.startsWith('ndots_test_top{'));
  assert.equal(series().length, 10);
  assert.ok(series().includes('ndots_test_top{client="key-39"} 40'));
  await clock.advance(2 * 3600_000);
  assert.deepEqual(series(), []);
  top.close();
});
