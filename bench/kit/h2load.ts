/** Generates load with h2load. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { question, type Child } from '../../test/kit/child.ts';
import type { Load } from './dnsperf.ts';

/** Settings for h2load. `directory` is where the request body is written. */
export interface HttpLoadOptions {
  readonly port: number;
  readonly directory: string;
  /** The name of an A record, queried repeatedly. */
  readonly name: string;
  readonly seconds: number;
  readonly clients: number;
  /** Concurrent requests per connection. */
  readonly streams: number;
  readonly cpu?: number;
}

/** Loads DNS over HTTPS on 127.0.0.1 with h2load, using POST over HTTP/2, and measures the server's CPU time. */
export function loadHttps(server: Child, options: HttpLoadOptions): Load {
  const { port, directory, name, seconds, clients, streams, cpu = 1 } = options;
  const body = join(directory, 'question.bin');
  writeFileSync(body, question(name, 1, 0));
  const words = [
    ...['-c', String(cpu), 'h2load', '-D', String(seconds), '-t', '1'],
    ...['-c', String(clients), '-m', String(streams), '-d', body],
    ...['-H', 'content-type: application/dns-message', `https://127.0.0.1:${port}/dns-query`],
  ];
  const before = server.cpuSeconds();
  const { stdout, stderr, status } = spawnSync('taskset', words, { encoding: 'utf8' });
  const cpuUsed = server.cpuSeconds() - before;
  if (status !== 0) throw new Error(`h2load: ${stderr}${stdout}`);
  const number = (pattern: RegExp): number => Number(pattern.exec(stdout)?.[1] ?? 'NaN');
  const completed = number(/ (\d+) succeeded/);
  const latency = /time for request:\s+\S+\s+\S+\s+([\d.]+)(us|ms|s)/.exec(stdout);
  const unitMs = { us: 1e-3, ms: 1, s: 1e3 }[latency?.[2] ?? 'ms']!;
  return {
    sent: number(/ (\d+) started/),
    completed,
    lost: number(/ (\d+) failed/),
    perSecond: number(/, ([\d.]+) req\/s/),
    latencyMs: Number(latency?.[1] ?? 'NaN') * unitMs,
    cpuMicros: (cpuUsed * 1e6) / completed,
    rcodes: /status codes: (.*)/.exec(stdout)?.[1] ?? '',
  };
}
