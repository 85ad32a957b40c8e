import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { sizeBuckets, timeBuckets } from './buckets.ts';
import { Collection } from './collection.ts';
import { processSamples } from './process.ts';
import { SharedRegistry } from './shared-registry.ts';
import { runtimeSamples } from './runtime.ts';

test('promtool finds no fault in a complete scrape', (t) => {
  if (!hasPromtool(t)) return;
  const run = spawnSync('promtool', ['check', 'metrics'], {
    input: makeScrape().print('text'),
    encoding: 'utf8',
  });
  assert.equal(run.stdout + run.stderr, '');
  assert.equal(run.status, 0);
});

test("Prometheus's own parser reads and stores the OpenMetrics output", (t) => {
  if (!hasPromtool(t)) return;
  const directory = mkdtempSync(join(tmpdir(), 'ndots-metrics-'));
  try {
    // The importer requires a timestamp on each sample, which a scrape leaves to the scraper.
    const dated = makeScrape()
      .print('openmetrics')
      .replace(/^(?!#)(.+)$/gm, '$1 1763700000');
    writeFileSync(join(directory, 'scrape'), dated);
    const args = [
      'tsdb',
      'create-blocks-from',
      'openmetrics',
      join(directory, 'scrape'),
      directory,
    ];
    const run = spawnSync('promtool', args, { encoding: 'utf8' });
    assert.equal(run.status, 0, run.stdout + run.stderr);
    // The store cannot be read without a directory for the write-ahead log.
    mkdirSync(join(directory, 'wal'));
    const dump = spawnSync('promtool', ['tsdb', 'dump', directory], { encoding: 'utf8' });
    const samples = dated.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    assert.equal(dump.stdout.trim().split('\n').length, samples.length);
    assert.match(dump.stdout, /__name__="coredns_dns_requests_total".*type="A".* 1.5e\+06 1763/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

function hasPromtool(t: TestContext): boolean {
  const found = spawnSync('promtool', ['--version']).status === 0;
  if (!found) t.skip('promtool (Debian package prometheus) is not installed');
  return found;
}

/** One of everything, with CoreDNS's names and labels. */
function makeScrape(): Collection {
  const collection = new Collection();
  for (const name of ['main', 'worker-1']) {
    const registry = new SharedRegistry((event) => collection.add(name, event));
    const where = ['server', 'zone', 'view'] as const;
    registry
      .counter('coredns_dns_requests_total', 'Queries by server, zone and type.', [
        ...where,
        'type',
      ])
      .with('dns://:53', '.', 'a "quoted" \\ view\nof two lines', 'A')
      .add(750_000);
    const durations = registry.histogram(
      'coredns_dns_request_duration_seconds',
      'Time from a query to its reply.',
      where,
      timeBuckets,
    );
    durations.with('dns://:53', '.', '').observe(0.0004);
    durations.with('dns://:53', 'cluster.local.', '').observe(100);
    registry
      .histogram('coredns_dns_response_size_bytes', 'Size of replies.', where, sizeBuckets)
      .with('dns://:53', '.', '')
      .observe(512);
    registry
      .gauge('coredns_cache_entries', 'Replies in the cache.', ['type'])
      .with('success')
      .set(7);
    registry.counter('coredns_panics_total', 'Plugins that threw.', []);
  }
  collection.sample(() => processSamples());
  collection.sample(() =>
    runtimeSamples({
      version: process.version,
      memory: () => process.memoryUsage(),
      allocated: () => 1e9,
      gc: () => ({
        quantiles: new Map([
          [0, 0.001],
          [1, 0.5],
        ]),
        sum: 2,
        count: 7,
        last: 1.7e9,
      }),
      systemThreads: () => 9,
      processors: 2,
      running: () => 3,
      threads: () => [{ name: 'main', active: 12, idle: 30 }],
    }),
  );
  return collection;
}
