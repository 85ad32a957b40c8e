import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

test('if a signed zone does not fit on the disk, the file is unchanged, wherever the disk becomes full', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-signed-file-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'db.example.org.signed');
  writeFileSync(path, 'the zone as it was');
  // Texts of 1500 and 3000 bytes. The limit of 4096 bytes truncates the last write, as on a full disk.
  const code = `
    import { writeZoneFile } from ${JSON.stringify(new URL('signed-file.ts', import.meta.url))};
    const owner = new Uint8Array([1, 97, 0]);
    const text = (size) => [{ owner, type: 16, ttl: 60, data: Array(size / 100).fill(new Uint8Array([80, ...Array(80).fill(98)])), signatures: [] }];
    async function* zone() { yield text(1500); yield text(3000); }
    await writeZoneFile(${JSON.stringify(path)}, zone()).then(
      () => console.log('written'),
      (error) => console.log(error.code),
    );`;
  const words = ['-c', `ulimit -f 8; exec "$@"`, 'sh', process.execPath, '--input-type=module'];
  const { stdout, stderr } = spawnSync('sh', [...words, '-e', code], { encoding: 'utf8' });
  assert.equal(stdout, 'EFBIG\n', stderr);
  assert.equal(readFileSync(path, 'utf8'), 'the zone as it was');
  assert.deepEqual(readdirSync(directory), ['db.example.org.signed']);
});
