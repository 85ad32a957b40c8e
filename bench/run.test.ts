import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

/** A directory with `run.ts` and one benchmark, whose figure misses its goal if requested. */
const directory = mkdtempSync(join(tmpdir(), 'ndots-bench-'));
after(() => rmSync(directory, { recursive: true, force: true }));
for (const part of ['run.ts', 'kit/figures.ts', 'kit/history.ts'])
  cpSync(join('bench', part), join(directory, 'bench', part));
writeFileSync(
  join(directory, 'bench/quick.ts'),
  `import { beside, figure } from './kit/figures.ts';
beside('sloth', 'sloth 3');
figure('quickness', Number(process.env.QUICKNESS), 'ms', { atMost: 10 });
`,
);
writeFileSync(join(directory, 'package.json'), '{"type": "module"}');

function bench(
  quickness: number,
  ...words: readonly string[]
): { code: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['bench/run.ts', ...words], {
    cwd: directory,
    encoding: 'utf8',
    env: { ...process.env, QUICKNESS: String(quickness) },
  });
  return { code: status, text: stdout + stderr };
}

test('a missed goal is shown, and fails the run with --enforce', () => {
  assert.equal(bench(20).code, 0);
  assert.match(bench(20).text, /quickness +20 ms +\(goal ≤ 10: MISSED\)/);
  const { code, text } = bench(20, '--enforce');
  assert.equal(code, 1);
  assert.match(text, /^missed: quickness/m);
  assert.equal(bench(10, '--enforce').code, 0);
});

test('figures are stored only with --record, a line per run', () => {
  const history = join(directory, 'bench/history/quick.jsonl');
  assert.ok(!existsSync(history));
  bench(7, '--record');
  bench(20, 'quick', '--record', '--enforce');
  const runs = readFileSync(history, 'utf8').trimEnd().split('\n');
  const kept = runs.map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(
    kept.map(({ figures, peers }) => [figures, peers]),
    [7, 20].map((value) => [{ quickness: [value, 'ms'] }, { sloth: 'sloth 3' }]),
  );
});

test('an unknown benchmark or option is reported, and nothing runs', () => {
  for (const words of [['slow'], ['--help'], ['quick', '--recrod']]) {
    const { code, text } = bench(7, ...words);
    assert.equal(code, 3);
    assert.match(text, new RegExp(`^No such benchmark: ${words.at(-1)!}. There are: quick;`));
  }
});

test('figures from short measurements are neither enforced nor recorded', () => {
  for (const flag of ['--enforce', '--record']) {
    const { code, text } = bench(7, '--smoke', flag);
    assert.equal(code, 3);
    assert.match(text, /^--smoke measures nothing/);
  }
});
