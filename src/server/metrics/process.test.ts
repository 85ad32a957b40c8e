import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { type ProcFiles, processSamples } from './process.ts';
import type { MetricSample } from './sample.ts';

const linux: Readonly<Record<string, string>> = {
  '/proc/self/stat':
    '77 (ndots) serve (2)) S 1 77 77 0 -1 4194304 9 0 0 0 150 50 0 0 20 0 9 0 12345 1073741824 ' +
    '16384 18446744073709551615 1 1 0 0 0 0 0 4096 16384 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n',
  '/proc/stat': 'cpu  1 2 3\ncpu0 1 2 3\nbtime 1763700000\nprocesses 9\n',
  '/proc/self/status': 'Name:\tndots\nVmPeak:\t 9 kB\nVmRSS:\t   61440 kB\nThreads:\t9\n',
  '/proc/self/net/netstat':
    'TcpExt: SyncookiesSent TCPOFOQueue\nTcpExt: 0 1\n' +
    'IpExt: InNoRoutes InOctets OutOctets InMcastOctets\nIpExt: 0 5000 7000 3\n',
  '/proc/self/limits':
    'Limit                     Soft Limit           Hard Limit           Units     \n' +
    'Max open files            1024                 524288               files     \n' +
    'Max address space         unlimited            unlimited            bytes     \n',
};

test('process values are read from /proc, in seconds and bytes', () => {
  assert.deepEqual(valuesOf(processSamples(files(linux, { '/proc/self/fd': 21 }))), {
    process_cpu_seconds_total: 2,
    process_virtual_memory_bytes: 1_073_741_824,
    process_start_time_seconds: 1_763_700_123.45,
    process_resident_memory_bytes: 62_914_560,
    process_max_fds: 1024,
    process_virtual_memory_max_bytes: 2 ** 64,
    process_open_fds: 21,
    process_network_receive_bytes_total: 5000,
    process_network_transmit_bytes_total: 7000,
  });
});

test('CPU time and traffic are counters; everything else is a gauge', () => {
  const counters = processSamples(files(linux, {})).filter(({ kind }) => kind === 'counter');
  assert.deepEqual(
    counters.map(({ name }) => name),
    [
      'process_cpu_seconds_total',
      'process_network_receive_bytes_total',
      'process_network_transmit_bytes_total',
    ],
  );
});

test('unreadable values are left out, and the rest stays', () => {
  const { '/proc/self/stat': _, ...rest } = linux;
  assert.deepEqual(Object.keys(valuesOf(processSamples(files(rest, {})))), [
    'process_resident_memory_bytes',
    'process_max_fds',
    'process_virtual_memory_max_bytes',
    'process_network_receive_bytes_total',
    'process_network_transmit_bytes_total',
  ]);
});

test('without /proc there are no process values', () => {
  assert.deepEqual(processSamples(files({}, {})), []);
});

test('the real /proc describes this process', (t) => {
  if (!existsSync('/proc/self/stat')) return t.skip('no /proc here');
  const values = valuesOf(processSamples());
  const now = Date.now() / 1000;
  const start = values['process_start_time_seconds']!;
  assert.equal(Object.keys(values).length, 9);
  assert.ok(start > now - 3600 && start < now + 60, `started at ${start}, now it is ${now}`);
  assert.ok(values['process_resident_memory_bytes']! > 1e7);
  assert.ok(values['process_open_fds']! > 2);
});

function files(texts: Readonly<Record<string, string>>, counts: Record<string, number>): ProcFiles {
  const look = <T>(table: Readonly<Record<string, T>>, path: string): T => {
    const found = table[path];
    if (found === undefined) throw new Error(`ENOENT: ${path}`);
    return found;
  };
  return {
    readText: (path) => look(texts, path),
    countEntries: (path) => look(counts, path),
  };
}

function valuesOf(samples: readonly MetricSample[]): Record<string, number> {
  return Object.fromEntries(samples.map(({ name, value }) => [name, value]));
}
