import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../server/base/problem.ts';
import { readScrape } from '../../../test/kit/scrape.ts';
import type { Scrape } from '../../server/metrics/read-exposition.ts';
import { measuredSize, sampleOf } from './measured.ts';

const scrape = (queries: number, cpu: number, hits: number): Scrape =>
  readScrape(`# TYPE coredns_dns_requests_total counter
coredns_dns_requests_total{type="A"} ${queries / 2}
coredns_dns_requests_total{type="AAAA"} ${queries / 2}
coredns_dns_requests_total_created 1
process_cpu_seconds_total ${cpu}
coredns_cache_hits_total{type="success"} ${hits}
`);

test('one replica may be down at the peak, with the others at seven tenths of their CPU', () => {
  // Together, two replicas handle 20 000 queries/s of 50 µs each. This takes one CPU now and three at the peak, so five
  // replicas at 0.7.
  const before = [sampleOf(scrape(0, 0, 0), 0), sampleOf(scrape(0, 0, 0), 0)];
  const after = [
    sampleOf(scrape(100_000, 5, 60_000), 10_000),
    sampleOf(scrape(100_000, 5, 60_000), 10_000),
  ];
  const found = measuredSize(before, after, { cpu: 1, peak: 3 });
  assert.equal(found.replicas, 6);
  assert.equal(found.queriesPerSecond, 20_000);
  assert.equal(Math.round(found.cpuPerQuery * 1e6), 50);
  assert.equal(found.cacheHits, 0.6);
  assert.equal(found.utilisation, 0.5);
});

test('two are the minimum, and a restarted replica counts from zero', () => {
  const before = [sampleOf(scrape(1_000_000, 100, 0), 0)];
  const after = [sampleOf(scrape(10_000, 0.1, 0), 10_000)];
  const found = measuredSize(before, after, { cpu: 1, peak: 2 });
  assert.deepEqual([found.replicas, found.queriesPerSecond], [2, 1000]);
});

test('without queries there is nothing to compute', () => {
  const idle = [sampleOf(scrape(10, 1, 0), 0)];
  const later = [sampleOf(scrape(10, 1, 0), 10_000)];
  assert.throws(() => measuredSize(idle, later, { cpu: 1, peak: 2 }), Problem);
});
