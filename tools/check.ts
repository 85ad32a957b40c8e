/** Runs all the fast checks that a change must pass: format, lint, types and project rules. */
import { spawnSync } from 'node:child_process';

const steps: readonly (readonly [string, readonly string[]])[] = [
  ['format', ['oxfmt', '--check']],
  ['lint', ['oxlint', '--type-aware', '--quiet']],
  ['types', ['tsc', '-p', '.']],
  ['types of the playground', ['tsc', '-p', 'src/faces/playground']],
  ['types of the console', ['tsc', '-p', 'src/faces/console']],
  ['unused', ['knip', '-c', 'tools/knip.ts', '--treat-config-hints-as-errors']],
  ['unused but by tests', ['knip', '-c', 'tools/knip.ts', '--production']],
  ['man page', ['node', '--disable-warning=ExperimentalWarning', 'tools/man.ts', '--check']],
  [
    'monitoring',
    ['node', '--disable-warning=ExperimentalWarning', 'tools/monitoring.ts', '--check'],
  ],
  [
    'generated pages',
    [
      'node',
      '--test',
      '--test-reporter=dot',
      ...['coredns-table', 'figures', 'limits-page', 'metrics-page', 'pictures'].map(
        (page) => `test/${page}.test.ts`,
      ),
    ],
  ],
  ['prose', ['node', '--disable-warning=ExperimentalWarning', 'tools/prose.ts']],
  ['house', ['node', '--test', '--test-reporter=dot', 'test/tidy.test.ts']],
];

let failed = 0;
for (const [name, [program, ...words]] of steps) {
  const started = performance.now();
  const { status, stdout, stderr } = spawnSync(program!, words, {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${status === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`);
  if (status === 0) continue;
  failed++;
  console.log(`${stdout}${stderr}`.trimEnd());
}
process.exitCode = failed === 0 ? 0 : 1;
