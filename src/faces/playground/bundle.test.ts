import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import {
  buildPlayground,
  bundleForBrowser,
  loadedWith,
  type BuiltFile,
} from '../../../tools/browser-bundle.ts';

/** Engines that use no Node modules apart from `node:path`. */
const pureEngines: Readonly<Record<string, string>> = {
  resolver: 'src/tools/resolver/clients.ts',
  'lookup runner': 'src/tools/resolver/run-lookup.ts',
  'ndots planner': 'src/tools/resolver/ndots-plan.ts',
  'Corefile parser': 'src/server/corefile/parse.ts',
  'capture reader': 'src/tools/capture/read/reading.ts',
  'input detection': 'src/tools/capture/read/recognised-input.ts',
  doctor: 'src/tools/doctor/examination.ts',
  'questions of diff': 'src/tools/diff/witnesses.ts',
};

/** Engines that need files or an in-memory server, and therefore the browser machine's replacements. */
const machineEngines: Readonly<Record<string, string>> = {
  trace: 'src/faces/playground/engines/trace-engine.ts',
  lint: 'src/faces/playground/engines/lint-engine.ts',
  diff: 'src/faces/playground/engines/diff-engine.ts',
  doctor: 'src/faces/playground/engines/doctor-engine.ts',
};

describe('engines in a browser', () => {
  for (const [name, entry] of Object.entries(pureEngines))
    test(`the ${name} imports no module of Node`, async () => {
      const { missing } = await bundleForBrowser({ entry }, 'pure');
      assert.deepEqual(missing, []);
    });

  for (const [name, entry] of Object.entries(machineEngines))
    test(`the engine ${name} imports only modules of Node that the page replaces`, async () => {
      const { missing } = await bundleForBrowser({ entry }, 'machine');
      assert.deepEqual(missing, []);
    });

  test('an import of a Node module is found, even indirectly', async () => {
    const { missing } = await bundleForBrowser({ entry: 'src/server/base/read-file.ts' }, 'pure');
    assert.deepEqual(missing.map(({ module }) => module).toSorted(), ['node:fs', 'node:os']);
  });
});

describe('the built page', () => {
  let directory: string;
  let files: ReadonlyMap<string, BuiltFile>;
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ndots-playground-'));
    files = new Map((await buildPlayground(directory)).map((file) => [file.name, file]));
  });
  after(() => rmSync(directory, { recursive: true, force: true }));

  test('without engines it takes at most 60 KiB compressed', () => {
    const page = [
      ...loadedWith([...files.values()], 'page.js'),
      'index.html',
      'web.css',
      'playground.css',
      'icon.svg',
    ];
    const size = page.reduce((sum, name) => sum + gzipSync(files.get(name)!.bytes).length, 0);
    assert.ok(size <= 60 * 1024, `${size} bytes`);
  });

  test('each engine is a chunk that is loaded on demand', () => {
    const worker = files.get('engine-worker.js')!;
    for (const engine of ['trace', 'lint', 'diff', 'doctor']) {
      const chunk = worker.lazy.find((name) => name.startsWith(`${engine}-engine-`));
      assert.ok(chunk !== undefined, engine);
      assert.ok(!loadedWith([...files.values()], 'engine-worker.js').has(chunk), engine);
      assert.ok(!loadedWith([...files.values()], 'page.js').has(chunk), engine);
    }
  });

  test('its policy allows only its own scripts and workers, and no connections', () => {
    const html = readFileSync(join(directory, 'index.html'), 'utf8');
    const [, policy = ''] = /Content-Security-Policy"\s+content="([^"]+)"/.exec(html) ?? [];
    const rules = policy.split('; ');
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'none'",
      "form-action 'none'",
      "require-trusted-types-for 'script'",
    ])
      assert.ok(rules.includes(rule), rule);
    assert.doesNotMatch(policy, /unsafe/);
  });

  test('no file refers to another host', () => {
    for (const { name, bytes } of files.values()) {
      if (!/\.(?:html|css)$/.test(name)) continue;
      assert.doesNotMatch(new TextDecoder().decode(bytes), /https?:\/\//, name);
    }
  });
});
