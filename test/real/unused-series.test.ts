import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess } from '../kit/serve-process.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-series-'));
after(() => rmSync(directory, { recursive: true, force: true }));

const series = [
  'coredns_forward_healthcheck_broken_total',
  'coredns_forward_max_concurrent_rejects_total',
  'coredns_health_request_duration_seconds_count',
  'coredns_health_request_failures_total',
  'coredns_hosts_reload_timestamp_seconds',
  'coredns_local_localhost_requests_total',
  'coredns_reload_failed_total',
];

async function valuesOf(directives: string): Promise<ReadonlyMap<string, number>> {
  const server = await serveProcess(directives);
  try {
    const lines = (await server.metrics()).split('\n');
    return new Map(
      series.map((name) => {
        const found = lines.filter((line) => line.startsWith(`${name} `));
        assert.equal(found.length, 1, `${name} in ${found.length} lines`);
        return [name, Number(found[0]!.split(' ')[1])];
      }),
    );
  } finally {
    await server.stop();
  }
}

describe('series without labels', () => {
  test('are shown at zero when no Corefile names their plugins, as CoreDNS shows them', async () => {
    const values = await valuesOf('whoami');
    assert.deepEqual(
      [...values.values()],
      series.map(() => 0),
    );
  });

  test('are those of the plugins when these are used', async () => {
    const hosts = join(directory, 'hosts');
    writeFileSync(hosts, '10.0.0.1 a.example\n');
    const [health, upstream] = await freePorts(2);
    const values = await valuesOf(
      `local\nhosts ${hosts}\nhealth 127.0.0.1:${health}\nreload\nforward . 127.0.0.1:${upstream}\n`,
    );
    const stamp = values.get('coredns_hosts_reload_timestamp_seconds')!;
    assert.equal(Math.round(stamp), Math.round(statSync(hosts).mtimeMs / 1000));
  });
});
