/** docs/metrics.md lists every metric that the sources declare, with the help text in the code. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { declaredMetrics } from '../tools/metrics/declared-metrics.ts';
import { allMetrics, metricsPage } from '../tools/metrics-page.ts';

/** CoreDNS metrics that ndots reads from other servers but does not export. */
const onlyRead: ReadonlySet<string> = new Set([
  'coredns_build_info',
  'coredns_forward_healthcheck_failures_total',
  'coredns_forward_requests_total',
  'coredns_proxy_request_duration_seconds_count',
]);

describe('the metrics page', () => {
  test('is up to date', () =>
    assert.equal(
      readFileSync('docs/metrics.md', 'utf8'),
      metricsPage(),
      'run node tools/metrics-page.ts',
    ));

  test('has every metric name that a source writes', () => {
    const listed = allMetrics().map(({ name }) => name);
    const written = globSync('src/**/*.ts')
      .filter((file) => !file.endsWith('.test.ts'))
      .flatMap(
        (file) => readFileSync(file, 'utf8').match(/'(?:coredns|ndots|nodejs)_[a-z0-9_]+'/g) ?? [],
      )
      .map((name) => name.slice(1, -1));
    assert.ok(listed.length > 150);
    assert.deepEqual(
      [...new Set(written)].filter((name) => !listed.includes(name) && !onlyRead.has(name)),
      [],
    );
  });

  test('has a help text for each', () => {
    for (const { name, help } of allMetrics()) assert.match(help, /\w+ \w+/, name);
  });
});

describe('a declared metric is found', () => {
  for (const [source, name, kind, labels] of [
    [
      `m.counter('ndots_a_total', 'Counter of things.', ['zone']);`,
      'ndots_a_total',
      'counter',
      ['zone'],
    ],
    [`m.histogram('ndots_b_seconds', 'Time of things.');`, 'ndots_b_seconds', 'histogram', []],
    [
      `const N = 'ndots_c'; const L = ['a']; m.gauge(N, 'Sum ' + 'of c.', L);`,
      'ndots_c',
      'gauge',
      ['a'],
    ],
    [
      `const t = { https: ['coredns_d_total', 'Counter of d.'] };`,
      'coredns_d_total',
      'counter',
      [],
    ],
    [`f({ name: 'go_e', kind: 'summary', help: 'Time of e.' });`, 'go_e', 'summary', []],
    ["m.counter(`ndots_${k}_total`, 'Counter of k.', []);", 'ndots_*_total', 'counter', []],
  ] as const)
    test(source, () => {
      const [found] = declaredMetrics(source);
      assert.deepEqual([found?.name, found?.kind, found?.labels], [name, kind, labels]);
    });

  test('and a name without a help text is not one', () =>
    assert.deepEqual(declaredMetrics(`read('coredns_a_total', 'b'); x = ['ndots_c'];`), []));
});
