import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BLOCK_CELLS } from './cells.ts';
import { Collection } from './collection.ts';
import type { Registration } from './registration.ts';
import { overflowName, type RegistryOptions, SharedRegistry } from './shared-registry.ts';

describe('registering', () => {
  test('registering a family twice returns the same family', () => {
    const { registry } = listen();
    const first = registry.counter('a_total', 'A.', ['zone']);
    assert.equal(registry.counter('a_total', 'A.', ['zone']), first);
    const bounds = registry.histogram('h', 'H.', [], [1, 2]);
    assert.equal(registry.histogram('h', 'H.', [], [1, 2]), bounds);
  });

  const clashes: readonly (readonly [string, (registry: SharedRegistry) => void, RegExp])[] = [
    ['kind', (r) => r.gauge('a_total', 'A.', ['zone']), /a_total: .* different kind/],
    ['labels', (r) => r.counter('a_total', 'A.', ['zones']), /different labels/],
    ['help', (r) => r.counter('a_total', 'B.', ['zone']), /different help/],
    ['bounds', (r) => r.histogram('h_seconds', 'H.', [], [1, 3]), /different bounds/],
    ['merge', (r) => r.gauge('g', 'G.', [], 'max'), /different merge/],
  ];
  for (const [field, register, message] of clashes) {
    test(`the same name with another ${field} is a bug and throws`, () => {
      const { registry } = listen();
      registry.counter('a_total', 'A.', ['zone']);
      registry.histogram('h_seconds', 'H.', [], [1, 2]);
      registry.gauge('g', 'G.', []);
      assert.throws(() => register(registry), message);
    });
  }

  const refused: readonly (readonly [string, (registry: SharedRegistry) => void, RegExp])[] = [
    ['a name with a dash', (r) => r.counter('a-b', '', []), /not a metric name/],
    ['an empty name', (r) => r.counter('', '', []), /not a metric name/],
    ['a label with a colon', (r) => r.counter('a', '', ['x:y']), /not a label name/],
    ['a reserved label', (r) => r.counter('a', '', ['__name__']), /not a label name/],
    ['a label twice', (r) => r.counter('a', '', ['x', 'x']), /named twice/],
    ['a histogram with the label le', (r) => r.histogram('a', '', ['le'], [1]), /le is reserved/],
    ['falling bounds', (r) => r.histogram('a', '', [], [2, 1]), /ascend/],
    ['equal bounds', (r) => r.histogram('a', '', [], [1, 1]), /ascend/],
    ['an infinite bound', (r) => r.histogram('a', '', [], [1, Infinity]), /finite/],
    ['no bounds', (r) => r.histogram('a', '', [], []), /0 buckets/],
    [
      'a gauge named as a sample of a histogram',
      (r) => (r.histogram('a', '', [], [1]), r.gauge('a_count', '', [])),
      /a_count: prints as a_count, which belongs to a$/,
    ],
    [
      'a gauge named as a counter without _total',
      (r) => (r.counter('a_total', '', []), r.gauge('a', '', [])),
      /a: prints as a, which belongs to a_total/,
    ],
  ];
  for (const [what, register, message] of refused) {
    test(`${what} throws`, () => assert.throws(() => register(listen().registry), message));
  }

  test('a wrong number of label values throws and lists the labels', () => {
    const family = listen().registry.counter('a_total', '', ['zone', 'type'] as readonly string[]);
    assert.throws(() => family.with('.'), /a_total: has the labels \[zone, type\], was given 1/);
  });
});

describe('events', () => {
  test('a family is announced once, a label set on first use, and counts never', () => {
    const { registry, events } = listen();
    const requests = registry.counter('requests_total', 'R.', ['type']);
    assert.deepEqual(kinds(events), ['family']);
    requests.with('A').add(1);
    requests.with('A').add(1);
    registry.counter('requests_total', 'R.', ['type']).with('A').add(1);
    assert.deepEqual(kinds(events), ['family', 'block', 'series']);
    requests.with('AAAA');
    assert.deepEqual(kinds(events), ['family', 'block', 'series', 'series']);
  });

  test('a family without labels has its cell from the beginning', () => {
    const { registry, events } = listen();
    registry.counter('panics_total', 'P.', []);
    assert.deepEqual(kinds(events), ['family', 'block', 'series']);
  });

  test('every event survives structured cloning, and the memory stays shared', () => {
    const copies: Registration[] = [];
    const registry = new SharedRegistry((event) => copies.push(structuredClone(event)));
    const gauge = registry.gauge('entries', 'E.', ['zone']);
    gauge.with('.').set(4);
    const collection = new Collection();
    for (const copy of copies.splice(0)) collection.add('worker', copy);
    assert.match(collection.print('text'), /^entries\{zone="."\} 4$/m);
    gauge.remove('.');
    assert.deepEqual(copies, [{ event: 'removal', series: 0, last: [4] }]);
  });

  test('when a block is full, new cells go into another block, and existing ones do not move', () => {
    const { registry, events, collection } = listen();
    const family = registry.counter('many_total', 'M.', ['n']);
    const first = family.with('first');
    const count = BLOCK_CELLS;
    for (let n = 0; n < count; n++) family.with(String(n)).add(n);
    first.add(7);
    assert.equal(events.filter((event) => event.event === 'block').length, 3);
    const text = collection.print('text');
    assert.match(text, /^many_total\{n="first"\} 7$/m);
    for (let n = 0; n < count; n++) assert.ok(text.includes(`many_total{n="${n}"} ${n}\n`));
  });
});

describe('instruments', () => {
  test('a counter ignores amounts that would make it fall or become NaN', () => {
    const { registry, collection } = listen();
    const counter = registry.counter('a_total', '', []).with();
    for (const amount of [2, -1, 0, NaN, -Infinity, 0.5]) counter.add(amount);
    assert.match(collection.print('text'), /^a_total 2.5$/m);
  });

  test('a value equal to a bucket bound belongs to that bucket', () => {
    const { registry, collection } = listen();
    registry.histogram('size_bytes', '', [], [0, 512]).with().observe(512);
    assert.match(collection.print('text'), /le="0"\} 0\n.*le="512"\} 1\n.*le="\+Inf"\} 1\n/);
  });

  test('a histogram ignores NaN', () => {
    const { registry, collection } = listen();
    const histogram = registry.histogram('h', '', [], [1]).with();
    histogram.observe(NaN);
    histogram.observe(3);
    assert.match(collection.print('text'), /le="\+Inf"\} 1\nh_sum 3\nh_count 1\n/);
  });
});

describe('limit on label sets', () => {
  test('label sets beyond it share one cell under "other", and the uses are counted', () => {
    const { registry, collection } = listen({ series: 2 });
    const family = registry.counter('upstream_total', '', ['to', 'rcode']);
    for (const to of ['a', 'b', 'c', 'd', 'a']) family.with(to, 'NOERROR').add(1);
    const text = collection.print('text');
    assert.match(text, /^upstream_total\{rcode="NOERROR",to="a"\} 2$/m);
    assert.match(text, /^upstream_total\{rcode="other",to="other"\} 2$/m);
    assert.match(text, /^ndots_metrics_overflow_total\{family="upstream_total"\} 2$/m);
    assert.equal(text.match(/^upstream_total\{/gm)?.length, 3);
  });

  test('a forgotten label set makes room for another', () => {
    const { registry, collection } = listen({ series: 1 });
    const family = registry.counter('a_total', '', ['x']);
    family.with('1').add(1);
    family.remove('1');
    family.with('2').add(5);
    assert.match(collection.print('text'), /^a_total\{x="2"\} 5$/m);
  });

  test('a label value longer than any domain name goes to "other"', () => {
    const { registry, collection } = listen();
    registry.counter('a_total', '', ['x']).with('y'.repeat(5000)).add(1);
    assert.match(collection.print('text'), /^a_total\{x="other"\} 1$/m);
  });

  test('many overflowing families do not overflow the overflow counter', () => {
    const { registry, collection } = listen({ series: 1 }, new Collection({ series: 1 }));
    for (const name of ['a', 'b', 'c']) {
      const family = registry.counter(`${name}_total`, '', ['x']);
      for (const x of ['1', '2']) family.with(x).add(1);
    }
    // Once in the registry and once in the collection, each with a limit of one.
    const counts = collection.print('text').match(new RegExp(`^${overflowName}.* 2$`, 'gm'));
    assert.equal(counts?.length, 3);
  });
});

describe('forgetting', () => {
  test('a forgotten label set is no longer printed, and counts on remaining handles are discarded', () => {
    const { registry, collection } = listen();
    const family = registry.counter('a_total', '', ['x', 'y']);
    const old = family.with('1', '2');
    family.with('1', '3').add(1);
    old.add(1);
    family.remove('1', '2');
    old.add(1);
    assert.doesNotMatch(collection.print('text'), /y="2"/);
    family.with('1', '2').add(10);
    old.add(1);
    assert.match(collection.print('text'), /^a_total\{x="1",y="2"\} 10$/m);
    assert.match(collection.print('text'), /^a_total\{x="1",y="3"\} 1$/m);
  });

  test('forgetting a label set that never existed does nothing', () => {
    const { registry, events } = listen();
    registry.counter('a_total', '', ['x', 'y']).remove('1', '2');
    assert.deepEqual(kinds(events), ['family']);
  });

  test('the label set of a family without labels can be forgotten and comes back at zero', () => {
    const { registry, collection } = listen();
    const family = registry.gauge('a', '', []);
    family.with().set(3);
    family.remove();
    assert.doesNotMatch(collection.print('text'), /^a /m);
    family.with();
    assert.match(collection.print('text'), /^a 0$/m);
  });

  test('cells are reused once the reader has unlocked them, so reloads do not fill memory', () => {
    const { registry, events } = listen();
    const family = registry.histogram('a', '', ['x'], [1, 2, 3]);
    for (let n = 0; n < 2000; n++) {
      family.with(String(n)).observe(1);
      family.remove(String(n));
    }
    assert.equal(events.filter((event) => event.event === 'block').length, 1);
  });

  test('cells are not reused as long as the reader may still print them', () => {
    const waiting: Registration[] = [];
    const registry = new SharedRegistry((event) => waiting.push(event));
    const family = registry.counter('a_total', '', ['x']);
    const collection = new Collection();
    const deliver = (): void => {
      for (const event of waiting.splice(0)) collection.add('worker', event);
    };
    family.with('old').add(1);
    deliver();
    family.remove('old');
    family.with('new').add(100);
    assert.match(collection.print('text'), /^a_total\{x="old"\} 1$/m);
    deliver();
    assert.match(collection.print('text'), /^a_total\{x="new"\} 100$/m);
    assert.doesNotMatch(collection.print('text'), /x="old"/);
  });
});

function listen(options: RegistryOptions = {}, collection = new Collection()) {
  const events: Registration[] = [];
  const registry = new SharedRegistry((event) => {
    events.push(event);
    collection.add('main', event);
  }, options);
  return { registry, events, collection };
}

function kinds(events: readonly Registration[]): readonly string[] {
  return events.map(({ event }) => event);
}
