import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, normalize } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { answered, start } from '../kit/child.ts';
import { freePorts } from '../kit/serve-process.ts';

/** What `npm pack` packs, installed as a user installs it. */

const folder = mkdtempSync(join(tmpdir(), 'ndots-package-'));
after(() => rmSync(folder, { recursive: true, force: true }));

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function run(words: readonly string[], env: NodeJS.ProcessEnv = process.env): Ran {
  const [program = '', ...rest] = words;
  const { status, stdout, stderr } = spawnSync(program, rest, {
    encoding: 'utf8',
    env: { ...env, npm_config_fetch_retries: '0', npm_config_prefer_offline: 'true' },
    timeout: 120_000,
  });
  return { code: status, out: stdout, err: stderr };
}

/** PATH with this program's runtime, the pinned one, first; and without it. */
const pinned = dirname(process.execPath);
const others = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((place) => place !== '' && !place.includes('node_modules') && place !== pinned);

/** The machine's own Node, if it has one besides the pinned. */
const machineNode = others.map((place) => join(place, 'node')).find((file) => existsSync(file));
const machineMajor =
  machineNode === undefined ? null : Number(/\d+/.exec(run([machineNode, '--version']).out)?.[0]);

/** What npm says when there is no way to its registry. */
const unreachable = /ENOTFOUND|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|ENOTCACHED/;

describe('the package', () => {
  const unpacked = join(folder, 'unpacked');
  let tarball = '';
  let files: readonly string[] = [];

  before(() => {
    const { code, out, err } = run([
      'npm',
      'pack',
      '--json',
      // `dist/` is compiled already, by npm ci: packing must not take it away under other tests.
      '--ignore-scripts',
      '--pack-destination',
      folder,
    ]);
    assert.equal(code, 0, err);
    // npm 11 prints a list, later ones an object by name of package.
    const printed = JSON.parse(out) as Record<
      string,
      { filename: string; files: { path: string }[] }
    >;
    const [packed] = Object.values(printed);
    tarball = join(folder, packed!.filename);
    files = packed!.files.map(({ path }) => path);
  });

  test('holds program, manual, pages and examples, and no tests', () => {
    for (const file of [
      'bin/ndots',
      'dist/cli/main.js',
      'man/ndots.1',
      'README.md',
      'LICENSE',
      'CHANGELOG.md',
      'docs/coredns.md',
      'docs/problems.md',
      'docs/trace.schema.json',
      'src/plugins/kubernetes/kubernetes.md',
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

  test('installed for all users, it serves on this runtime, and its manual is where man looks', async (t) => {
    const prefix = join(unpacked, 'pinned');
    const env = { ...process.env, PATH: [pinned, ...others].join(delimiter) };
    const { code, err } = run(['npm', 'install', '-g', '--prefix', prefix, tarball], env);
    if (unreachable.test(err)) return t.skip('the registry of npm cannot be reached');
    assert.equal(code, 0, err);
    const ndots = join(prefix, 'bin/ndots');
    assert.match(run([ndots, '--version'], env).out, /^ndots-\d.*\n.*nodev2\d/);
    assert.ok(existsSync(join(prefix, 'bin/kubectl-ndots')));
    const manual = join(prefix, 'share/man/man1');
    assert.match(readFileSync(join(manual, 'ndots.1'), 'utf8'), /^\.TH NDOTS 1/);
    assert.deepEqual(readdirSync(manual).toSorted(), readdirSync('man').toSorted());
    const [port] = (await freePorts(1)) as [number];
    const words = [ndots, 'serve', '--example', '-dns.port', String(port)];
    const child = start('ndots', words, { env });
    t.after(() => child.stop());
    await answered(port, 'backend.critical-app.svc.cluster.local');
  });

  test('installed with an older Node, each verb says in one line which one is needed', (t) => {
    if (machineNode === undefined || machineMajor === null || machineMajor >= 24)
      return t.skip('this machine has no Node older than 24');
    const prefix = join(unpacked, 'machine');
    const env = { ...process.env, PATH: [dirname(machineNode), ...others].join(delimiter) };
    const { code, err } = run(['npm', 'install', '-g', '--prefix', prefix, tarball], env);
    if (unreachable.test(err)) return t.skip('the registry of npm cannot be reached');
    assert.equal(code, 0, err);
    for (const words of [['--version'], ['serve', '--example'], ['trace', 'a']]) {
      const ran = run([join(prefix, 'bin/ndots'), ...words], env);
      assert.equal(ran.code, 2);
      assert.equal(ran.out, '');
      assert.match(ran.err, /^ndots needs Node 24 or later, and \S+ is v\d+\.\d+\.\d+: .*\n$/);
    }
  });
});

test('a checkout in which nothing is installed says so in one line', () => {
  const checkout = join(folder, 'checkout');
  run(['mkdir', '-p', `${checkout}/src/cli`]);
  run(['cp', '-r', 'bin', checkout]);
  run(['cp', 'src/cli/main.ts', `${checkout}/src/cli`]);
  const { code, err } = run([`${checkout}/bin/ndots`, '--version']);
  assert.equal(code, 2);
  assert.match(err, /^ndots: nothing is installed in \S+ yet: run npm ci there\.\n$/);
});

test('NODE_OPTIONS gives the heap another limit', () => {
  const limit = (options: string): number => {
    const script =
      'process.on("exit", () => console.error(v8.getHeapStatistics().heap_size_limit))';
    const file = join(folder, 'limit.cjs');
    writeFileSync(file, `const v8 = require('node:v8'); ${script}`);
    const { err } = run(['bin/ndots', '--version'], {
      ...process.env,
      NODE_OPTIONS: `--require ${file} ${options}`,
    });
    return Number(err) / 1024 / 1024;
  };
  assert.ok(limit('') < 256);
  assert.ok(limit('--max-old-space-size=512') >= 512);
});
