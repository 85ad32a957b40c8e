/** Plays stories from files, as described on the page about their format. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { StoryOutcome } from '../../src/tools/lab/story.ts';
import { broken, noLab, runLab } from '../kit/lab.ts';
import { formatSections } from '../kit/story-format.ts';

const page = readFileSync('docs/lab-stories.md', 'utf8');
const directory = mkdtempSync(join(tmpdir(), 'ndots-story-test-'));
after(() => rmSync(directory, { recursive: true }));

test('the page has every key, every step and every result', () => {
  for (const [heading, text] of Object.entries(formatSections()))
    for (const line of text.split('\n'))
      assert.ok(page.includes(line.trimEnd()), `${heading}: ${line}`);
});

test('init prints the example', async () => {
  const { stdout, code } = await runLab('init');
  assert.equal(code, 0);
  assert.equal(stdout, readFileSync('examples/lab/story.yaml', 'utf8'));
});

test('a Corefile in a story is checked before anything is built', async () => {
  const file = join(directory, 'corefile.yaml');
  const corefile = '.:53 {\n        kuberntes cluster.local\n    }';
  writeFileSync(
    file,
    `story: x\ncluster:\n  corefile: |\n    ${corefile}\nacts: [{ cure: y, steps: [{ wait: 1s, as: w }], expect: [{ value: w.x, is: 1 }] }]\n`,
  );
  const fixed = readFileSync(file, 'utf8').replace('value: w.x', 'value: "1"');
  writeFileSync(file, fixed);
  const { stderr, code } = await runLab('run', '-f', file);
  assert.equal(code, 2);
  assert.match(stderr, /Unknown directive 'kuberntes'[^]*corefile\.yaml:5/);
});

test(
  'the story of the page goes as documented, and fails where it does not',
  { skip: noLab ?? false },
  async () => {
    const [, yaml = ''] = /```yaml\n([^]*?)```/.exec(page) ?? [];
    const file = join(directory, 'story.yaml');
    writeFileSync(file, yaml.replace('atMost: 2.4', 'atMost: 0'));
    const { stdout, code, stderr } = await runLab('run', '-f', file, '-o', 'json');
    assert.equal(code, 1, stderr);
    const [outcome] = JSON.parse(stdout) as StoryOutcome[];
    const [only, ...others] = broken(outcome!);
    assert.match(only ?? '', /go\.seconds is [\d.]+, not at most 0/);
    assert.deepEqual(others, []);
  },
);
