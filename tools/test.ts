/**
 * Runs the tests: `node tools/test.ts [FILE…]`. Ends with the line `N passed, N failed, N skipped`; every skipped test is
 * listed with its reason.
 */
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { installMissing } from './install.ts';

const named = process.argv.slice(2);
const all = ['src/**/*.test.ts', 'test/**/*.test.ts'];
const files = (named.length > 0 ? named : all).flatMap((pattern) => globSync(pattern)).toSorted();
if (files.length === 0) {
  console.error(`No test file matches ${named.join(' ')}`);
  process.exit(3);
}
if (named.length === 0) installMissing();

let passed = 0;
let failed = 0;
const skipped: string[] = [];
const stream = run({
  files,
  concurrency: Math.max(2, availableParallelism()),
  timeout: 300_000,
  argv: [],
  execArgv: ['--disable-warning=ExperimentalWarning'],
});
stream.on('test:pass', ({ name, skip, details, file }) => {
  if (details.type === 'suite') return;
  // A file that ran to its end is reported like a test; only what was declared in it counts.
  if (file !== undefined && name === file) return;
  if (skip === undefined) passed++;
  else skipped.push(`${name}: ${skip === true ? 'no reason given' : String(skip)}`);
});
stream.on('test:fail', ({ details }) => {
  if (details.type !== 'suite') failed++;
});
stream.compose(spec).pipe(process.stdout);
stream.on('end', () => {
  setImmediate(() => {
    for (const line of skipped) console.log(`skipped: ${line}`);
    console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
    process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
  });
});
