import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pack, run } from '../kit/package.ts';

/** The result of `npm pack`, and how the program starts. `package.long.test.ts` installs it. */

const directory = mkdtempSync(join(tmpdir(), 'ndots-package-'));
after(() => rmSync(directory, { recursive: true, force: true }));

describe('the package', () => {
  let files: readonly string[] = [];

  before(() => {
    ({ files } = pack(directory));
  });

  test('holds program, manual, pages and examples, and no tests', () => {
    for (const file of [
      'bin/ndots',
      'dist/faces/cli/main.js',
      'man/ndots.1',
      'README.md',
      'LICENSE',
      'CHANGELOG.md',
      'docs/coredns.md',
      'docs/problems.md',
      'docs/trace.schema.json',
      'src/server/plugins/kubernetes/kubernetes.md',
      'examples/Corefile',
    ])
      assert.ok(files.includes(file), file);
    assert.deepEqual(
      files.filter((file) => file.includes('.test.') || /^(test|bench|tools)\//.test(file)),
      [],
    );
  });

  test('holds every page that one of its pages links to', () => {
    const broken: string[] = [];
    for (const page of files.filter((file) => file.endsWith('.md'))) {
      const text = readFileSync(page, 'utf8').replaceAll(/^(```|~~~)[^]*?^\1/gm, '');
      for (const [, target = ''] of text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
        if (/^[a-z]+:/.test(target)) continue;
        const file = normalize(join(dirname(page), target));
        if (!files.some((each) => each === file || each.startsWith(`${file}/`)))
          broken.push(`${page} links to ${target}`);
      }
    }
    assert.deepEqual(broken, []);
  });
});

test('a checkout without installed packages reports that in one line', () => {
  const checkout = join(directory, 'checkout');
  run(['mkdir', '-p', `${checkout}/src/faces/cli`]);
  run(['cp', '-r', 'bin', checkout]);
  run(['cp', 'src/faces/cli/main.ts', `${checkout}/src/faces/cli`]);
  const { code, err } = run([`${checkout}/bin/ndots`, '--version']);
  assert.equal(code, 2);
  assert.match(err, /^ndots: nothing is installed in \S+ yet: run npm ci there\.\n$/);
});

test('long-running verbs have a small heap, unless NODE_OPTIONS sets another; interactive ones have the runtime’s', () => {
  const limit = (options: string, ...words: string[]): number => {
    const script =
      'process.on("exit", () => console.error(v8.getHeapStatistics().heap_size_limit))';
    const file = join(directory, 'limit.cjs');
    writeFileSync(file, `const v8 = require('node:v8'); ${script}`);
    const { err } = run(['bin/ndots', ...words], {
      ...process.env,
      NODE_OPTIONS: `--require ${file} ${options}`,
    });
    return Number(err) / 1024 / 1024;
  };
  for (const verb of ['serve', 'node-cache', 'webhook', 'check', 'capture'])
    assert.ok(limit('', verb, '--help') < 256, verb);
  // A capture of ten thousand clients does not fit in less.
  assert.ok(limit('', 'doctor', '--help') < 448);
  // The words that CoreDNS uses.
  assert.ok(limit('', '-version') < 256);
  assert.ok(limit('--max-old-space-size=512', 'serve', '--help') >= 512);
  for (const verb of ['lint', 'diff', 'plan', 'trace'])
    assert.ok(limit('', verb, '--help') > 256, verb);
});
