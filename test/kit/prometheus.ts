/** A real Prometheus (Debian's prometheus package) that scrapes a test's server. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { printed, start } from './child.ts';
import { freePorts } from './free-ports.ts';

export interface Prometheus {
  /** The URL of Prometheus's API, without a trailing slash. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts a Prometheus that scrapes `metricsUrl` every second.
 * @param config additional lines for its configuration file
 */
export async function startPrometheus(
  metricsUrl: string,
  config: Readonly<Record<string, unknown>> = {},
  ...flags: readonly string[]
): Promise<Prometheus> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-prometheus-'));
  const file = join(directory, 'prometheus.yaml');
  const [port] = await freePorts(1);
  const targets = [new URL(metricsUrl).host];
  writeFileSync(
    file,
    JSON.stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      scrape_configs: [{ job_name: 'coredns', static_configs: [{ targets }] }],
      ...config,
    }),
  );
  const child = start('prometheus', [
    'prometheus',
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(directory, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    ...flags,
  ]);
  await printed(child, /Server is ready to receive web requests/, 30_000);
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      child.signal('SIGKILL');
      await child.exitCode;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
