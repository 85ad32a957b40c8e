import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { open } from 'node:fs/promises';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { openFile } from './input.ts';
import { Remarks } from './packets/remarks.ts';

const folder = mkdtempSync(join(tmpdir(), 'ndots-input-'));
let pipes = 0;

function pipe(): string {
  const path = join(folder, `pipe-${pipes++}`);
  execFileSync('mkfifo', [path]);
  return path;
}

describe('a named pipe', { timeout: 60_000 }, () => {
  after(() => rmSync(folder, { recursive: true }));

  it('that nobody writes to is waited for, and no longer than one wants', async () => {
    const stop = new AbortController();
    const opening = openFile(pipe(), new Remarks(), stop.signal);
    const first = await Promise.race([
      opening,
      new Promise((done) => setTimeout(done, 100, 'waits')),
    ]);
    assert.equal(first, 'waits');
    stop.abort();
    assert.equal((await opening).format, 'empty');
  });

  it('is read until its writer closes it', async () => {
    const path = pipe();
    const opening = openFile(path, new Remarks());
    const writer = await open(path, 'w');
    await writer.write('[INFO] a line of a log\n');
    await writer.write('and another\n');
    await writer.close();
    const input = await opening;
    const chunks: Uint8Array[] = [];
    for await (const chunk of input.chunks) chunks.push(Uint8Array.from(chunk));
    assert.equal(Buffer.concat(chunks).toString(), '[INFO] a line of a log\nand another\n');
    assert.equal(input.format, 'text');
  });
});
