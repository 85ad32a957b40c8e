import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readStanding, writeStanding } from './standing.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-standing-'));
after(() => rmSync(directory, { recursive: true }));

test('a file that does not describe a lab is rejected, whatever it contains', () => {
  const file = join(directory, 'lab.json');
  for (const text of ['', 'null', '1', '[]', '{}', '{"pid":"x","startTime":null,"pods":[]}']) {
    writeFileSync(file, text);
    assert.equal(readStanding(file), null, text);
  }
});

test('a recorded lab is found while its process exists', () => {
  const file = join(directory, 'mine.json');
  const standing = writeStanding(file, process.pid, []);
  assert.deepEqual(readStanding(file), standing);
  writeFileSync(file, JSON.stringify({ ...standing, startTime: '1' }));
  assert.equal(readStanding(file), null);
});
