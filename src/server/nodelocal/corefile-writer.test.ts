import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

test('a Corefile that does not fit on the disk leaves the previous one intact, and is reported once', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-corefile-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const [base, corefile] = [join(directory, 'Corefile.base'), join(directory, 'Corefile')];
  const before = '.:53 {\n    whoami\n}\n';
  writeFileSync(base, `.:53 {\n    any\n}\n${'# a comment\n'.repeat(100)}`);
  writeFileSync(corefile, before);
  const code = `
    import { CorefileWriter } from ${JSON.stringify(new URL('corefile-writer.ts', import.meta.url))};
    import { emptyConfig } from ${JSON.stringify(new URL('kube-dns-config.ts', import.meta.url))};
    let errors = 0;
    const log = { error: console.log, info() {}, warning() {} };
    const writer = new CorefileWriter({
      base: ${JSON.stringify(base)}, corefile: ${JSON.stringify(corefile)}, derive: null, kubeDnsDirectory: ${JSON.stringify(join(directory, 'none'))},
      values: { localAddresses: [], port: 53, service: 'kube-dns', clusterDns: '192.0.2.1' }, log, onError: () => errors++,
    });
    console.log(writer.update(), writer.update(), errors);`;
  const words = ['-c', 'ulimit -f 1; exec "$@"', 'sh', process.execPath, '--input-type=module'];
  mkdirSync(join(directory, 'none'));
  const { stdout, stderr } = spawnSync('sh', [...words, '-e', code], { encoding: 'utf8' });
  const [told = '', ...rest] = stdout.split('\n');
  assert.ok(told.startsWith(`Failed to write config file ${corefile} - `), stdout + stderr);
  assert.deepEqual(rest, ['false false 1', '']);
  assert.equal(readFileSync(corefile, 'utf8'), before);
  assert.deepEqual(readdirSync(directory).sort(), ['Corefile', 'Corefile.base', 'none']);
});
