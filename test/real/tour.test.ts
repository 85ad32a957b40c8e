/** The tour shows its commands' output. Each command is run here, and its output must contain the lines on the page. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { printed, start, type Child } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';

interface Step {
  readonly command: string;
  readonly output: readonly string[];
}

const page = readFileSync('docs/tour.md', 'utf8');
/** An output block belongs to the block of commands before it. */
const steps: readonly Step[] = [...page.matchAll(/^```(\w+)\n([^]*?)^```$/gm)]
  .map(([, language, text = '']) => ({ language, text }))
  .flatMap(({ language, text }, at, fences) => {
    const command = fences[at - 1]?.text.replaceAll(/\\\n\s*/g, '').trim() ?? '';
    return language === 'text' ? [{ command, output: text.trimEnd().split('\n') }] : [];
  });

/** Times vary between runs, as does the space in front of them. */
const withoutTimes = (line: string): string =>
  line.replaceAll(/ *\b\d+(?:\.\d+)? m?s\b/g, ' T').trimEnd();

/** Reports the first line on a page that the output does not have in that place. `…` matches any number of lines. */
function missingLine(wanted: readonly string[], output: string): string | null {
  const lines = output.trimEnd().split('\n').map(withoutTimes);
  let at = 0;
  let isGap = false;
  for (const line of wanted) {
    if (line === '…') {
      isGap = true;
      continue;
    }
    const found = lines.indexOf(withoutTimes(line), at);
    if (found < 0 || (!isGap && found !== at)) return line;
    at = found + 1;
    isGap = false;
  }
  return isGap || at === lines.length ? null : `and no line after ${wanted.at(-1)}`;
}

/** The reason why a command cannot run here. */
function skipped(command: string): string | false {
  if (!command.startsWith('sudo ')) return false;
  if (process.getuid?.() !== 0) return 'needs root';
  return spawnSync('unshare', ['-n', 'true']).status === 0 ? false : 'needs network namespaces';
}

describe('the tour', () => {
  let port: number;
  let child: Child;
  before(async () => {
    [port] = await freePorts(1);
    const program = resolve('bin/ndots');
    child = start('ndots', [program, 'serve', '--example', '-dns.port', String(port)]);
    await printed(child, /Press Ctrl-C to stop/, 20_000);
  });
  after(() => child.stop());

  test('has at least six steps with output, each of one command of ndots', () => {
    assert.ok(steps.length >= 6);
    for (const { command } of steps) assert.match(command, /^(?:sudo )?npx ndots [^\n]*$/);
  });

  test('every numbered step shows what you see', () => {
    for (const step of page.split(/^## (?=\d)/m).slice(1))
      assert.match(step, /^```text$|^<picture>$/m, step.split('\n')[0]!);
  });

  for (const { command, output } of steps)
    test(`shows the output of: ${command}`, { skip: skipped(command) }, () => {
      const line = command
        .replace(/^sudo /, '')
        .replace('npx ndots', resolve('bin/ndots'))
        .replace('127.0.0.1:1053', `127.0.0.1:${port}`);
      const { stdout, stderr } = spawnSync('sh', ['-c', line], {
        encoding: 'utf8',
        timeout: 60_000,
        env: { ...process.env, TZ: 'UTC' },
      });
      assert.equal(missingLine(output, stdout), null, `${stdout}${stderr}`);
    });

  test('would notice a line that is not printed, or not there', () => {
    assert.equal(missingLine(['a', 'c'], 'a\nb\nc\n'), 'c');
    assert.equal(missingLine(['a', '…', 'c'], 'a\nb\nc\n'), null);
    assert.equal(missingLine(['…', 'd'], 'a\nb\n'), 'd');
    assert.equal(missingLine(['a'], 'a\nb\n'), 'and no line after a');
    assert.equal(missingLine(['took 3 ms'], 'took   12.5 ms\n'), null);
  });
});
