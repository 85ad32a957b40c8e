/** The figures of the README are those of the last recorded run in `bench/history`. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

interface Run {
  readonly peers: Readonly<Record<string, string>>;
  readonly figures: Readonly<Record<string, readonly [value: number, ...rest: unknown[]]>>;
}

/** A row of the README → the benchmark, its figure, and whether the figure is the peer's divided by ours. */
const rows: Readonly<
  Record<string, readonly [benchmark: string, figure: string, isInverse: boolean]>
> = {
  'forward a query, with cache': ['forward', 'CPU per query, coredns : ndots, with cache', true],
  'forward a query over TLS': [
    'forward-encrypted',
    'CPU per query over tls, coredns : ndots',
    true,
  ],
  'forward a query, without cache': ['forward', 'CPU per query, ndots : dnsdist', false],
  'serve DNS over TLS, 4 busy connections': [
    'encrypted',
    'CPU per query over tls, 4 clients, coredns : ndots',
    true,
  ],
  'serve DNS over HTTPS, POST': [
    'encrypted',
    'CPU per query over https, h2load, coredns : ndots',
    true,
  ],
  'serve a zone file of 100 000 names': ['zone', 'CPU per query, ndots : knot', false],
  'read a capture of 1 000 000 packets and diagnose it': [
    'capture',
    'doctor: CPU time, of tcpdump’s',
    false,
  ],
};

function lastRun(benchmark: string): Run {
  const lines = readFileSync(`bench/history/${benchmark}.jsonl`, 'utf8').trimEnd().split('\n');
  return JSON.parse(lines.at(-1)!) as Run;
}

test('each figure of the README is the last recorded one, with the version of the peer in that run', () => {
  const found = [
    ...readFileSync('README.md', 'utf8').matchAll(/^\| (.+) \| ([\d.]+) × \| (\w+)([^|]*) \|$/gm),
  ];
  assert.deepEqual(
    found.map(([, row]) => row),
    Object.keys(rows),
  );
  for (const [, row = '', shown, peer = '', rest = ''] of found) {
    const [benchmark, name, isInverse] = rows[row]!;
    const { figures, peers } = lastRun(benchmark);
    const [value] = figures[name]!;
    assert.equal(shown, (isInverse ? 1 / value : value).toFixed(2), row);
    const version = /^ ([\d.]+)/.exec(rest)?.[1];
    const measured = peers[peer.toLowerCase()];
    assert.ok(measured !== undefined, `${row}: no ${peer} in that run`);
    if (version !== undefined) assert.ok(measured.includes(version), `${row}: ${measured}`);
  }
});
