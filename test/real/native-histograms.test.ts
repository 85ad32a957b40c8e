/** Native histograms, scraped and stored by a real Prometheus. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { queryBytes, UdpClient } from '../kit/loopback.ts';
import { startPrometheus, type Prometheus } from '../kit/prometheus.ts';
import { serveProcess, type ServeProcess } from '../kit/serve-process.ts';

const missing = spawnSync('prometheus', ['--version']).status !== 0;
const skip = missing ? 'prometheus (Debian package prometheus) missing' : false;

describe('a Prometheus that stores native histograms', { skip }, () => {
  let server: ServeProcess | null = null;
  let prometheus: Prometheus | null = null;
  let url = '';
  const asked = 50;

  before(async () => {
    server = await serveProcess('whoami');
    const client = await UdpClient.open();
    for (let id = 1; id <= asked; id++) {
      client.send(queryBytes('a.example.org.', id), server.port);
      assert.ok((await client.next(10_000)) !== null);
    }
    client.close();
    prometheus = await startPrometheus(server.metricsUrl, {}, '--enable-feature=native-histograms');
    ({ url } = prometheus);
  });
  after(async () => {
    await server?.stop();
    await prometheus?.stop();
  });

  /** The only value of an expression, as soon as there is one. */
  const valueOf = async (expression: string): Promise<number> => {
    const end = Date.now() + 30_000;
    for (;;) {
      const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`);
      const { data } = (await answer.json()) as {
        data: { result: { value?: [number, string] }[] };
      };
      const [first] = data.result;
      if (first?.value !== undefined) return Number(first.value[1]);
      assert.ok(Date.now() < end, `${expression} has no value`);
      await pause(500);
    }
  };

  test('accepts every scrape', async () => {
    assert.equal(await valueOf('up'), 1);
    const { data } = (await (await fetch(`${url}/api/v1/targets`)).json()) as {
      data: { activeTargets: { health: string; lastError: string }[] };
    };
    for (const { health, lastError } of data.activeTargets) assert.equal(health, 'up', lastError);
  });

  test('counts the queries in native buckets, and computes quantiles of them', async () => {
    const durations = `sum(coredns_dns_request_duration_seconds)`;
    assert.equal(await valueOf(`histogram_count(${durations})`), asked);
    const median = await valueOf(`histogram_quantile(0.5, ${durations})`);
    assert.ok(median > 1e-6 && median < 1, `${median} s`);
    const sizes = `sum(coredns_dns_request_size_bytes)`;
    // All of them had 31 bytes, which buckets with a resolution of 4.4 % can distinguish.
    const size = await valueOf(`histogram_quantile(0.5, ${sizes})`);
    assert.ok(Math.abs(size / 31 - 1) < 0.045, `${size} bytes`);
    assert.equal(await valueOf(`histogram_fraction(0, 1000, ${sizes})`), 1);
  });

  test('has the values of counters, gauges and summaries', async () => {
    assert.equal(await valueOf('sum(coredns_dns_requests_total{type="A"})'), asked);
    assert.equal(await valueOf('coredns_plugin_enabled{name="whoami"}'), 1);
    assert.ok((await valueOf('go_gc_duration_seconds{quantile=~"1|1.0"}')) >= 0);
  });
});
