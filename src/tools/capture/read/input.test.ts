import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { mkdtempSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { openFile } from './input.ts';
import { Remarks } from './packets/remarks.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-input-'));
let pipes = 0;

function pipe(): string {
  const path = join(directory, `pipe-${pipes++}`);
  execFileSync('mkfifo', [path]);
  return path;
}

describe('a named pipe', { timeout: 60_000 }, () => {
  after(() => rmSync(directory, { recursive: true }));

  it('without a writer is waited for, and no longer than requested', async () => {
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

describe('a file that is neither a capture nor text', () => {
  const open1 = async (bytes: Uint8Array): Promise<string> => {
    const path = join(mkdtempSync(join(tmpdir(), 'ndots-foreign-')), 'file');
    writeFileSync(path, bytes);
    try {
      return (await openFile(path, new Remarks())).format;
    } catch (error) {
      return (error as Error).message.slice(path.length);
    } finally {
      rmSync(dirname(path), { recursive: true });
    }
  };
  const refused = (what: string): string => ` is ${what}, which ndots does not read`;

  it('is named in the message', async () => {
    assert.equal(
      await open1(Buffer.from('fd377a585a000004', 'hex')),
      refused('compressed with xz'),
    );
    assert.equal(await open1(Buffer.from('PK\u0003\u0004abcdef')), refused('a zip archive'));
    assert.equal(
      await open1(readFileSync(process.execPath).subarray(0, 4096)),
      refused('a program'),
    );
    assert.equal(
      await open1(Buffer.from('\ufeffwww.example.org\n', 'utf16le')),
      refused('UTF-16 text, as written by PowerShell'),
    );
    const tar = Buffer.alloc(1024);
    tar.write('names.txt');
    tar.write('ustar', 257);
    assert.equal(await open1(tar), refused('a tar archive'));
    assert.equal(await open1(gzipSync(tar)), refused('a tar archive (within gzip)'));
    // As in encrypted and compressed files.
    const blocks = Array.from({ length: 32 }, (_, at) =>
      createHash('sha256').update(`${at}`).digest(),
    );
    assert.equal(await open1(Buffer.concat(blocks)), refused('binary data of an unknown kind'));
  });

  it('is named if another verb reads it', async () => {
    const other = (what: string): string => ` is ${what}, not a capture, a log or a list of names`;
    for (const path of globSync(['test/corefiles/*.corefile', '{examples,deploy}/**/Corefile']))
      assert.equal(await open1(readFileSync(path)), other('a Corefile'), path);
    assert.equal(await open1(Buffer.from('(own) {\n  errors\n}\n')), other('a Corefile'));
    assert.equal(
      await open1(Buffer.from('# made by hand\nsearch a.example\nnameserver 10.0.0.1\n')),
      other('a resolv.conf'),
    );
    assert.equal(
      await open1(Buffer.from('---\napiVersion: v1\nkind: List\n')),
      other('a Kubernetes manifest'),
    );
  });

  it('does not include lists of names, and metrics', async () => {
    for (const text of [
      'www.example.org 12\ncart.shop # often\n',
      'search\nnameserver\nsearch.example\n',
      '# HELP coredns_x y\ncoredns_x{zone=".",server="dns://:53"} 3\n',
      '.:53\n[INFO] plugin/reload: Running configuration SHA512 = 1\n',
    ])
      assert.equal(await open1(Buffer.from(text)), 'text', text);
  });

  it('does not include a log that was truncated while it was written', async () => {
    const line = '[INFO] 10.0.0.1:4000 - 1 "A IN a. udp 30 false 512" NOERROR qr 40 0.001s\n';
    assert.equal(await open1(Buffer.from(`${'\0'.repeat(5000)}${line}`)), 'text');
    assert.equal(await open1(Buffer.from(`\u001b[32m[INFO]\u001b[0m ${line}`)), 'text');
    assert.equal(await open1(Buffer.from('Ünïcode\n')), 'text');
  });
});
