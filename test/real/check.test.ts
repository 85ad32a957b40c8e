/** `ndots check` against servers that are processes of their own. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { start } from '../kit/child.ts';
import { serveProcess } from '../kit/serve-process.ts';

const program = resolve('bin/ndots');

async function ndots(...words: readonly string[]): Promise<{ code: number | null; text: string }> {
  const child = start('ndots', [program, ...words]);
  const code = await child.exitCode;
  return { code, text: child.output() };
}

const zone = `  kubernetes cluster.local {
    manifests ${resolve('examples/cluster')}
  }`;

describe('ndots check', () => {
  test('the checks of examples/check.yaml pass on the example cluster', async (t) => {
    const server = await serveProcess(zone);
    const folder = mkdtempSync(join(tmpdir(), 'ndots-check-'));
    t.after(async () => {
      rmSync(folder, { recursive: true });
      await server.stop();
    });
    const yaml = readFileSync('examples/check.yaml', 'utf8');
    const file = join(folder, 'check.yaml');
    // The machine is busy while all tests run.
    writeFileSync(
      file,
      yaml.replaceAll(':1053', `:${server.port}`).replace('timeout: 1s', 'timeout: 8s'),
    );
    const { code, text } = await ndots('check', 'run', '-f', file);
    assert.equal(code, 0, text);
    assert.match(text, /^12 checks, \d+ targets, \d+ ok; 0 of \d+ queries lost$/m, text);
  });

  test('a cut answer comes whole over TCP, from each replica', async (t) => {
    const records = Array.from({ length: 60 }, (_, index) => `    10.0.0.${index + 1} big.example`);
    const server = await serveProcess(`  hosts {\n${records.join('\n')}\n  }`);
    t.after(() => server.stop());
    const yaml = join(mkdtempSync(join(tmpdir(), 'ndots-check-')), 'check.yaml');
    t.after(() => rmSync(yaml, { force: true }));
    writeFileSync(
      yaml,
      `vip: 127.0.0.1:${server.port}\ntimeout: 8s\nchecks:\n  - { check: truncation-roundtrip, name: big.example }\n`,
    );
    const { code, text } = await ndots('check', 'run', '-f', yaml);
    assert.equal(code, 0, text);
    assert.match(text, /cut at \d+ bytes, whole over TCP with 60 records/);
  });
});
