import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Collection } from './collection.ts';
import type { TextFormat } from './formats.ts';
import type { Family, Histogram } from './registry.ts';
import { SharedRegistry } from './shared-registry.ts';

const format: fc.Arbitrary<TextFormat> = fc.constantFrom('text', 'openmetrics');

test('a merged histogram equals the histogram of all observations of all threads', () => {
  const values = fc.array(fc.integer({ min: 0, max: 100 }), { maxLength: 20 });
  fc.assert(
    fc.property(
      fc.array(values, { minLength: 1, maxLength: 4 }),
      fc.uniqueArray(fc.integer({ min: 0, max: 90 }), { minLength: 1, maxLength: 8 }),
      format,
      (threads, unsorted, form) => {
        const bounds = unsorted.toSorted((a, b) => a - b);
        const collection = new Collection();
        threads.forEach((observations, thread) => {
          const registry = new SharedRegistry((event) => collection.add(`t${thread}`, event));
          const histogram = registry.histogram('h', 'H.', [], bounds).with();
          for (const value of observations) histogram.observe(value);
        });
        const all = threads.flat();
        const read = parseScrape(collection.print(form));
        for (const bound of [...bounds, Infinity]) {
          const expected = all.filter((value) => value <= bound).length;
          assert.equal(
            find(read, 'h_bucket', (l) => readFloat(l['le']!) === bound),
            expected,
          );
        }
        assert.equal(find(read, 'h_count'), all.length);
        assert.equal(
          find(read, 'h_sum'),
          all.reduce((sum, value) => sum + value, 0),
        );
      },
    ),
  );
});

test('counters are always the sum over all threads, and never fall until all threads forget them', () => {
  const thread = fc.integer({ min: 0, max: 2 });
  const label = fc.constantFrom('a', 'b', 'c');
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ act: fc.constant('add' as const), thread, label, amount: fc.nat(9) }),
    },
    { weight: 2, arbitrary: fc.record({ act: fc.constant('forget' as const), thread, label }) },
    { weight: 1, arbitrary: fc.record({ act: fc.constant('restart' as const), thread }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const collection = new Collection();
      const begin = (index: number): Family<readonly ['x'], Histogram> =>
        new SharedRegistry((event) => collection.add(`t${index}`, event)).histogram(
          'h',
          'H.',
          ['x'],
          [4],
        );
      const families = [0, 1, 2].map(begin);
      // The model records each label set's total, and which threads have it.
      const totals = new Map<string, { sum: number; holders: Set<number> }>();
      for (const step of steps) {
        if (step.act === 'add') {
          families[step.thread]!.with(step.label).observe(step.amount);
          const total = totals.get(step.label) ?? { sum: 0, holders: new Set() };
          totals.set(step.label, total);
          total.sum += step.amount;
          total.holders.add(step.thread);
        } else if (step.act === 'forget') {
          families[step.thread]!.remove(step.label);
          const total = totals.get(step.label);
          if (total?.holders.delete(step.thread) && total.holders.size === 0) {
            totals.delete(step.label);
          }
        } else {
          collection.retire(`t${step.thread}`);
          families[step.thread] = begin(step.thread);
          for (const { holders } of totals.values()) holders.delete(step.thread);
        }
        const read = parseScrape(collection.print('text'));
        const sums = read.filter(({ name }) => name === 'h_sum');
        assert.deepEqual(
          new Map(sums.map(({ labels, value }) => [labels['x'], value])),
          new Map(Array.from(totals, ([x, { sum }]): [string, number] => [x, sum])),
        );
      }
    }),
  );
});

test('printed output reads back: names, label values with any characters, values', () => {
  const labelValue = fc.string({ unit: 'binary', maxLength: 12 });
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(labelValue, labelValue), {
        selector: (pair) => pair.join('\0'),
        maxLength: 8,
      }),
      fc.array(fc.double({ noNaN: true }), { minLength: 8, maxLength: 8 }),
      fc.string({ unit: 'binary' }),
      format,
      (pairs, values, help, form) => {
        const collection = new Collection();
        const registry = new SharedRegistry((event) => collection.add('main', event));
        const family = registry.gauge('some_gauge', help, ['zeta', 'alpha']);
        pairs.forEach(([zeta, alpha], index) => family.with(zeta, alpha).set(values[index]!));
        const read = parseScrape(collection.print(form)).filter(
          ({ name }) => name === 'some_gauge',
        );
        assert.equal(read.length, pairs.length);
        pairs.forEach(([zeta, alpha], index) => {
          const value = find(read, 'some_gauge', (l) => l['zeta'] === zeta && l['alpha'] === alpha);
          assert.equal(value + 0, values[index]! + 0);
        });
      },
    ),
  );
});

test('print gives the same page regardless of the order of events', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(fc.constantFrom('p', 'q', 'r'), fc.nat(20)), {
        selector: String,
        minLength: 1,
      }),
      fc.infiniteStream(fc.nat()),
      (uses, order) => {
        const page = (list: readonly (readonly [string, number])[]): string => {
          const collection = new Collection();
          const registry = new SharedRegistry((event) => collection.add('main', event));
          for (const [name, x] of list) {
            registry.counter(`${name}_total`, 'H.', ['x']).with(String(x)).add(x);
          }
          return collection.print('text');
        };
        const shuffled = uses
          .map((use) => ({ use, rank: order.next().value }))
          .toSorted((a, b) => a.rank - b.rank)
          .map(({ use }) => use);
        assert.equal(page(shuffled), page(uses));
      },
    ),
  );
});

interface Line {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Parses samples, and throws on any line that is neither a sample nor a known comment. */
function parseScrape(text: string): readonly Line[] {
  assert.ok(text === '' || text.endsWith('\n'));
  const lines: Line[] = [];
  for (const line of text.split('\n').slice(0, -1)) {
    if (/^# (HELP [\w:]+ |TYPE [\w:]+ (counter|gauge|histogram|unknown)$|EOF$)/.test(line))
      continue;
    const match = /^([\w:]+)(?:\{(.*)\})? (\S+)$/s.exec(line);
    assert.ok(match, `not a line of a scrape: ${JSON.stringify(line)}`);
    const labels: Record<string, string> = {};
    let rest = match[2] ?? '';
    while (rest !== '') {
      const label = /^(\w+)="((?:[^"\\]|\\["\\n])*)"(?:,(?=\w)|$)/s.exec(rest);
      assert.ok(label, `not labels: ${JSON.stringify(rest)}`);
      labels[label[1]!] = label[2]!.replace(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c));
      rest = rest.slice(label[0].length);
    }
    lines.push({ name: match[1]!, labels, value: readFloat(match[3]!) });
  }
  return lines;
}

function readFloat(text: string): number {
  return Number(text.replace('Inf', 'Infinity'));
}

function find(
  lines: readonly Line[],
  name: string,
  fits: (labels: Line['labels']) => boolean = () => true,
): number {
  const found = lines.filter((line) => line.name === name && fits(line.labels));
  assert.equal(found.length, 1, `${found.length} lines of ${name}`);
  return found[0]!.value;
}
