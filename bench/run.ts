/**
 * Runs benchmarks: `npm run bench [-- NAME…] [--smoke]`. Each file in this folder is one; it prints ratios against a peer that
 * runs beside it. `--smoke` only shows that they run.
 */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { basename } from 'node:path';

const words = process.argv.slice(2);
const smoke = words.includes('--smoke');
const names = words.filter((word) => !word.startsWith('-'));
const all = globSync('bench/*.ts', { exclude: ['bench/run.ts'] }).toSorted();
const chosen = all.filter((file) => names.length === 0 || names.includes(basename(file, '.ts')));
if (chosen.length === 0) {
  console.error(
    `No such benchmark. There are: ${all.map((file) => basename(file, '.ts')).join(' ')}`,
  );
  process.exit(3);
}
let failed = 0;
for (const file of chosen) {
  console.log(`\n== ${basename(file, '.ts')}`);
  const { status } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--expose-gc', file],
    {
      stdio: 'inherit',
      env: { ...process.env, ...(smoke ? { BENCH_SMOKE: '1' } : {}) },
    },
  );
  if (status !== 0) {
    failed++;
    console.error(`${file} ended with ${status}`);
  }
}
process.exitCode = failed === 0 ? 0 : 1;
