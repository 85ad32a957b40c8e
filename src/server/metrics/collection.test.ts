import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../base/virtual-clock.ts';
import { Collection } from './collection.ts';
import { SharedRegistry } from './shared-registry.ts';
import type { MetricSample } from './sample.ts';

describe('merging threads', () => {
  test('counters and histograms are summed', () => {
    const { collection, thread } = makeThreads();
    for (const name of ['main', 'worker-1', 'worker-2']) {
      const registry = thread(name);
      registry.counter('requests_total', 'R.', ['type']).with('A').add(2);
      registry.histogram('size_bytes', 'S.', [], [10, 20]).with().observe(15);
    }
    const text = collection.print('text');
    assert.match(text, /^requests_total\{type="A"\} 6$/m);
    assert.match(text, /le="10"\} 0\n.*le="20"\} 3\n.*le="\+Inf"\} 3\nsize_bytes_sum 45\n/);
  });

  test('a sum gauge is the sum over the threads', () => {
    const { collection, thread } = makeThreads();
    thread('a').gauge('entries', '', []).with().set(3);
    thread('b').gauge('entries', '', []).with().set(-1);
    assert.match(collection.print('text'), /^entries 2$/m);
  });

  test('a max gauge is the largest value set; threads that never set it do not count', () => {
    const { collection, thread } = makeThreads();
    const [a, b] = ['a', 'b', 'c'].map((n) => thread(n).gauge('level', '', [], 'max').with());
    assert.match(collection.print('text'), /^level 0$/m);
    a!.set(-7);
    assert.match(collection.print('text'), /^level -7$/m);
    b!.set(-5);
    assert.match(collection.print('text'), /^level -5$/m);
  });

  test('a last gauge is the most recently set value, from whichever thread', async () => {
    const clock = new VirtualClock();
    const { collection, thread } = makeThreads(clock);
    const [a, b] = ['a', 'b'].map((n) => thread(n).gauge('stamp', '', [], 'last').with());
    b!.set(10);
    await clock.advance(5);
    a!.set(4);
    assert.match(collection.print('text'), /^stamp 4$/m);
    await clock.advance(5);
    b!.add(1);
    assert.match(collection.print('text'), /^stamp 11$/m);
  });

  test('threads that disagree about a family are a bug and throw', () => {
    const { thread } = makeThreads();
    thread('a').counter('x_total', 'X.', []);
    assert.throws(() => thread('b').counter('x_total', 'Y.', []), /x_total: .* different help/);
    assert.throws(
      () => thread('b').gauge('x', 'X.', []),
      /x: prints as x, which belongs to x_total/,
    );
  });

  test('an event about something that was never announced throws', () => {
    const { collection } = makeThreads();
    assert.throws(
      () =>
        collection.add('a', {
          event: 'series',
          family: 0,
          series: 0,
          values: [],
          block: 0,
          at: 1,
          native: false,
        }),
      /thread a: label set 0 belongs to nothing/,
    );
    assert.throws(
      () => collection.add('a', { event: 'removal', series: 3, last: [] }),
      /label set 3/,
    );
  });
});

describe('an ended thread', () => {
  test('leaves its counts behind, and its successor continues from there', () => {
    const { collection, thread } = makeThreads();
    const count = (name: string): void =>
      thread(name).counter('requests_total', '', ['type']).with('A').add(5);
    count('worker-1');
    collection.retire('worker-1');
    assert.match(collection.print('text'), /^requests_total\{type="A"\} 5$/m);
    count('worker-1');
    assert.match(collection.print('text'), /^requests_total\{type="A"\} 10$/m);
  });

  test('takes its gauges with it', () => {
    const { collection, thread } = makeThreads();
    thread('a').gauge('entries', '', ['x']).with('1').set(3);
    thread('b').gauge('entries', '', ['x']).with('2').set(4);
    collection.retire('a');
    assert.doesNotMatch(collection.print('text'), /x="1"/);
    assert.match(collection.print('text'), /^entries\{x="2"\} 4$/m);
  });

  test('is ignored if it was never known', () => {
    const { collection } = makeThreads();
    const before = collection.print('text');
    collection.retire('nobody');
    assert.equal(collection.print('text'), before);
  });

  test('does not make a sum of fractions fall by a rounding error', () => {
    const { collection, thread } = makeThreads();
    // 0.1 + 0.2 + 0.6 is 0.9, but 0.6 + 0.1 + 0.2 is 0.8999999999999999.
    [0.1, 0.2, 0.6].forEach((amount, index) => {
      thread(`worker-${index}`).counter('seconds_total', '', []).with().add(amount);
    });
    assert.match(collection.print('text'), /^seconds_total 0.9$/m);
    collection.retire('worker-2');
    assert.match(collection.print('text'), /^seconds_total 0.9$/m);
  });

  test('loses its label sets at the limit before running threads have to share', () => {
    const { collection, thread } = makeThreads(undefined, new Collection({ series: 2 }));
    const use = (name: string, x: string): void =>
      thread(name).counter('a_total', '', ['x']).with(x).add(1);
    use('old', '1');
    collection.retire('old');
    use('new', '2');
    use('newer', '3');
    const full = collection.print('text');
    assert.doesNotMatch(full, /x="1"/);
    assert.match(full, /^a_total\{x="3"\} 1$/m);
    use('newest', '4');
    use('last', '5');
    const text = collection.print('text');
    assert.match(text, /^a_total\{x="other"\} 2$/m);
    assert.match(text, /^ndots_metrics_overflow_total\{family="a_total"\} 2$/m);
  });
});

describe('a forgotten label set', () => {
  test('keeps all its counts if one of two threads forgets it; if both do, it is gone', () => {
    const { collection, thread } = makeThreads();
    const [a, b] = ['a', 'b'].map((n) => thread(n).counter('to_total', '', ['to']));
    a!.with('1.1.1.1').add(3);
    b!.with('1.1.1.1').add(4);
    a!.remove('1.1.1.1');
    assert.match(collection.print('text'), /^to_total\{to="1.1.1.1"\} 7$/m);
    b!.remove('1.1.1.1');
    assert.doesNotMatch(collection.print('text'), /to_total/);
    a!.with('1.1.1.1').add(1);
    assert.match(collection.print('text'), /^to_total\{to="1.1.1.1"\} 1$/m);
  });
});

describe('order', () => {
  test('families are sorted by name, labels by name, label sets by value, regardless of arrival order', () => {
    const { collection, thread } = makeThreads();
    const b = thread('x').gauge('b', '', ['zone', 'server']);
    b.with('b.', 's1').set(1);
    b.with('a.', 's2').set(2);
    b.with('a.', 's1').set(3);
    thread('y').gauge('a', '', []);
    collection.sample(() => [sampleOf('aa', 1)]);
    const lines = collection.print('text').split('\n');
    assert.deepEqual(
      lines.filter((line) => /^[ab]/.test(line)),
      [
        'a 0',
        'aa 1',
        'b{server="s1",zone="a."} 3',
        'b{server="s1",zone="b."} 1',
        'b{server="s2",zone="a."} 2',
      ],
    );
  });

  test('a family without used label sets is not printed', () => {
    const { collection, thread } = makeThreads();
    thread('x').counter('unused_total', 'U.', ['x']);
    assert.doesNotMatch(collection.print('openmetrics'), /unused/);
  });
});

describe('samples', () => {
  test('are computed at every scrape until they are removed', () => {
    const { collection } = makeThreads();
    let value = 0;
    const end = collection.sample(() => [sampleOf('now', ++value)]);
    assert.match(collection.print('text'), /^now 1$/m);
    assert.match(collection.print('text'), /^now 2$/m);
    end();
    assert.doesNotMatch(collection.print('text'), /^now/m);
  });

  const faults: readonly (readonly [string, () => Iterable<MetricSample>, RegExp])[] = [
    [
      'throws',
      () => {
        throw new Error('cannot read');
      },
      /cannot read/,
    ],
    ['uses a registered name', () => [sampleOf('taken', 1)], /belongs to taken/],
    ['uses the name of another sampler', () => [sampleOf('fine', 1)], /belongs to another sampler/],
    ['gives a label set twice', () => [sampleOf('d', 1), sampleOf('d', 1)], /sampled twice/],
    [
      'gives two kinds',
      () => [sampleOf('d', 1), { ...sampleOf('d', 1, { x: 'y' }), kind: 'counter' }],
      /different kinds/,
    ],
    ['gives a bad name', () => [sampleOf('d-d', 1)], /not a metric name/],
  ];
  for (const [what, fn, message] of faults) {
    test(`a sampler that ${what} is left out and counted, and the scrape continues`, () => {
      const errors: unknown[] = [];
      const { collection, thread } = makeThreads(
        undefined,
        new Collection({ onError: (error) => errors.push(error) }),
      );
      thread('main').gauge('taken', '', []).with().set(5);
      collection.sample(() => [sampleOf('fine', 6)]);
      collection.sample(fn);
      const text = collection.print('text');
      assert.match(text, /^taken 5$/m);
      assert.match(text, /^fine 6$/m);
      assert.match(text, /^ndots_metrics_sample_errors_total 1$/m);
      assert.match(String(errors[0]), message);
    });
  }
});

function sampleOf(name: string, value: number, labels: Record<string, string> = {}): MetricSample {
  return { kind: 'gauge', name, help: 'H.', value, labels };
}

function makeThreads(clock = new VirtualClock(), collection = new Collection()) {
  const thread = (name: string): SharedRegistry =>
    new SharedRegistry((event) => collection.add(name, event), { clock });
  return { collection, thread };
}
