/** The figures in the README and docs/figures.md match the recorded runs in `bench/history`. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { figuresPage } from '../tools/figures-page.ts';
import { recordedFigure } from '../tools/figures/recorded-figure.ts';

/** Maps a README row to the benchmark, its figure, and whether the figure is the peer's value divided by ours. */
const rows: Readonly<
  Record<string, readonly [benchmark: string, figure: string, isInverse: boolean]>
> = {
  'answer a service name from memory': ['serve', 'CPU per query, ndots : unbound', false],
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
};

test('each figure of the README is the middle of the recorded runs, with the version of the peer in the last one', () => {
  const found = [
    ...readFileSync('README.md', 'utf8').matchAll(/^\| (.+) \| ([\d.]+) × \| (\w+)([^|]*) \|$/gm),
  ];
  assert.deepEqual(
    found.map(([, row]) => row),
    Object.keys(rows),
  );
  for (const [, row = '', shown, peer = '', rest = ''] of found) {
    const [benchmark, name, isInverse] = rows[row]!;
    const recorded = recordedFigure(`bench/history/${benchmark}.jsonl`, name, null, isInverse);
    assert.equal(shown, recorded?.middle.toFixed(2), row);
    const version = /^ ([\d.]+)/.exec(rest)?.[1];
    const measured = recorded?.peers[peer.toLowerCase()];
    assert.ok(measured !== undefined, `${row}: no ${peer} in that run`);
    if (version !== undefined) assert.ok(measured.includes(version), `${row}: ${measured}`);
  }
});

test('docs/figures.md is up to date', () => {
  assert.equal(
    readFileSync('docs/figures.md', 'utf8'),
    figuresPage(),
    'run node tools/figures-page.ts',
  );
});

test('a page shows the middle and the range of the quiet runs, and the busy ones apart', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-history-'));
  const file = join(directory, 'a.jsonl');
  const run = (value: number | null, load: number, neighbour?: string): string =>
    JSON.stringify({ load, neighbour, peers: { x: `x ${value}` }, figures: { f: [value, 'ms'] } });
  const lines = [run(4, 0), run(2, 1), run(null, 0), run(900, 9), run(8, 0, 'hog'), run(5, 3)];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const peers = { x: 'x 5' };
  assert.deepEqual(recordedFigure(file, 'f', null), {
    ...{ middle: 4, least: 2, most: 5, runs: 3, unit: 'ms', peers },
  });
  assert.equal(recordedFigure(file, 'f', 'hog')?.middle, 8);
  assert.equal(recordedFigure(file, 'f', null, true)?.middle, 0.25);
  assert.equal(recordedFigure(file, 'g', null), null);
  rmSync(directory, { recursive: true });
});
