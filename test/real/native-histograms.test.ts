/** Native histograms, as a real Prometheus scrapes and stores them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { printed, start, type Child } from '../kit/child.ts';
import { queryBytes, UdpClient } from '../kit/loopback.ts';
import { freePorts, serveProcess, type ServeProcess } from '../kit/serve-process.ts';

const missing = spawnSync('prometheus', ['--version']).status !== 0;
const skip = missing ? 'prometheus (Debian package prometheus) missing' : false;

describe('a Prometheus that stores native histograms', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'ndots-native-'));
  let server: ServeProcess | null = null;
  let prometheus: Child | null = null;
  let url = '';
  /** Queries that were asked. */
  const asked = 50;

  before(async () => {
    const [port] = (await freePorts(1)) as [number];
    server = await serveProcess('whoami');
    const client = await UdpClient.open();
    for (let id = 1; id <= asked; id++) {
      client.send(queryBytes('a.example.org.', id), server.port);
      assert.ok((await client.next(10_000)) !== null);
    }
    client.close();
    const config = {
      global: { scrape_interval: '1s' },
      scrape_configs: [
        { job_name: 'dns', static_configs: [{ targets: [new URL(server.metricsUrl).host] }] },
      ],
    };
    const file = join(folder, 'prometheus.yaml');
    writeFileSync(file, JSON.stringify(config));
    prometheus = start('prometheus', [
      'prometheus',
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--enable-feature=native-histograms',
    ]);
    url = `http://127.0.0.1:${port}`;
    await printed(prometheus, /Server is ready to receive web requests/, 30_000);
  });
  after(async () => {
    await server?.stop();
    prometheus?.signal('SIGKILL');
    await prometheus?.exitCode;
    rmSync(folder, { recursive: true, force: true });
  });

  /** The one value of an expression, once there is one. */
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

  test('takes every scrape', async () => {
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
    // All were as long: 31 bytes, which a bucket of 4.4 % knows.
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
