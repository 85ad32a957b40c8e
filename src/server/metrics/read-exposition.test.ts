import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readScrape } from '../../../test/kit/scrape.ts';
import { Scrape } from './read-exposition.ts';

/** Tests that metrics from other programs are read the way Prometheus reads them. */

describe('a scrape', () => {
  test('is summed over all series with a name, and by label', () => {
    const scrape = readScrape(
      '# HELP a_total x\na_total{rcode="SERVFAIL",zone="."} 3\na_total{rcode="NOERROR",zone="."} 40 1700000000000\na_total_created 9\nb 1e3\nc +Inf\n',
    );
    assert.equal(scrape.sum('a_total'), 43);
    assert.deepEqual(
      [...scrape.by('a_total', 'rcode')],
      [
        ['SERVFAIL', 3],
        ['NOERROR', 40],
      ],
    );
    assert.equal(scrape.sum('b'), 1000);
    assert.equal(scrape.sum('c'), Infinity);
    assert.equal(scrape.has('d'), false);
  });

  test('may have braces, commas, quotes and line ends in values', () => {
    const scrape = readScrape('a{to="x\\"},y{",b="\\n\\\\"} 1\n');
    assert.deepEqual([...scrape.by('a', 'to')], [['x"},y{', 1]]);
    assert.deepEqual([...scrape.by('a', 'b')], [['\n\\', 1]]);
  });

  test('is the same however it is split into chunks', () => {
    const text = 'a{x="1"} 1\nb{x="2",y="3"} 2\n\nnonsense\na{x="4"} 5';
    const whole = readScrape(text);
    fc.assert(
      fc.property(fc.array(fc.nat(text.length)), (cuts) => {
        const scrape = new Scrape(() => true);
        const at = [0, ...cuts.toSorted((one, other) => one - other), text.length];
        for (let nth = 1; nth < at.length; nth++) scrape.push(text.slice(at[nth - 1], at[nth]));
        assert.deepEqual(scrape.end().by('a', 'x'), whole.by('a', 'x'));
        assert.equal(scrape.sum('b'), 2);
      }),
    );
  });

  test('of garbage is empty, and a line without an end takes no memory', () => {
    fc.assert(fc.property(fc.string(), (text) => void readScrape(text)));
    const scrape = new Scrape(() => true);
    for (let nth = 0; nth < 20_000; nth++) scrape.push('x'.repeat(1000));
    assert.equal(scrape.end().size, 0);
  });

  test('of millions of series stores a bounded number', () => {
    const scrape = new Scrape(() => true);
    for (let nth = 0; nth < 60_000; nth++) scrape.push(`a{n="${nth}"} 1\n`);
    assert.equal(scrape.size, 50_000);
  });
});
