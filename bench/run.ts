/**
 * Runs benchmarks: `npm run bench [-- NAME…] [--enforce] [--record] [--busy] [--smoke]`. Each file in this directory is
 * a benchmark, which prints ratios to a peer measured in the same run. `--enforce`: fails if a goal is missed.
 * `--record`: adds the figures to `bench/history/NAME.jsonl`. `--busy`: runs another program that reads memory.
 * `--smoke` only checks that benchmarks work: its runs are too short to be enforced or recorded.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { FIGURES_FILE, misses, printFigure, readFigures } from './kit/figures.ts';
import { BUSY, machine, printRun, record } from './kit/history.ts';

const flags = ['--smoke', '--enforce', '--record', '--busy'];
const words = process.argv.slice(2);
const [smoke, enforce, recording, busy] = flags.map((flag) => words.includes(flag));
const names = words.filter((word) => !word.startsWith('-'));
const all = globSync('bench/*.ts', { exclude: ['bench/run.ts', 'bench/*.test.ts'] }).toSorted();
const known = all.map((file) => basename(file, '.ts'));
const unknown = words.find((word) => !(word.startsWith('-') ? flags : known).includes(word));
if (unknown !== undefined || (smoke && (enforce || recording))) {
  console.error(
    unknown === undefined
      ? '--smoke measures nothing that could be enforced or recorded.'
      : `No such benchmark: ${unknown}. There are: ${known.join(' ')}; and ${flags.join(', ')}.`,
  );
  process.exit(3);
}
const chosen = all.filter((file) => names.length === 0 || names.includes(basename(file, '.ts')));
const directory = mkdtempSync(join(tmpdir(), 'ndots-figures-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
let failed = 0;
if (busy) {
  const neighbour = spawn(process.execPath, [`bench/peers/${BUSY}.ts`], { stdio: 'ignore' });
  neighbour.unref();
  process.on('exit', () => neighbour.kill());
}
for (const file of chosen) {
  const name = basename(file, '.ts');
  console.log(`\n== ${name}`);
  const told = join(directory, name);
  const where = machine(busy ? BUSY : null);
  const startMs = performance.now();
  const { status } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--expose-gc', file],
    {
      stdio: 'inherit',
      env: { ...process.env, [FIGURES_FILE]: told, ...(smoke ? { BENCH_SMOKE: '1' } : {}) },
    },
  );
  console.log(`${name} took ${Math.round((performance.now() - startMs) / 1000)} s`);
  const { figures, peers } = readFigures(existsSync(told) ? readFileSync(told, 'utf8') : '');
  const missed = enforce ? figures.filter(misses) : [];
  for (const figure of missed) console.error(`missed: ${printFigure(figure)}`);
  if (status !== 0) console.error(`${file} ended with ${status}`);
  if (status !== 0 || missed.length > 0) failed++;
  if (recording && status === 0 && figures.length > 0)
    console.log(`recorded in ${record(name, printRun(where, figures, peers))}`);
}
process.exitCode = failed === 0 ? 0 : 1;
