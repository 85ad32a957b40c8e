import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { pcapFile } from '../../../test/kit/packets.ts';
import { Problem } from '../../server/base/problem.ts';
import { FILE_MAX } from '../../server/base/read-file.ts';
import { LINK } from '../../tools/capture/read/packets/frame.ts';
import { readStream, readText } from './named-file.ts';

test('standard input is read correctly even if chunks split a character', async () => {
  const chunks = [Buffer.from('größe').subarray(0, 3), Buffer.from('größe').subarray(3)];
  assert.equal(await readStream(Readable.from(chunks), 'list of names', 100), 'größe');
});

test('endless standard input is rejected with an explanation, and read no further', async () => {
  let given = 0;
  function* endless(): Generator<Buffer> {
    for (;;) {
      given++;
      yield Buffer.alloc(1024 * 1024);
    }
  }
  await assert.rejects(
    readStream(Readable.from(endless()), 'Corefile', 4 * 1024 * 1024),
    (error) => {
      assert.ok(error instanceof Problem);
      assert.equal(error.message, 'standard input: the Corefile is larger than 4 MiB');
      return true;
    },
  );
  assert.ok(given < 30, `${given} MiB were read`);
});

test('a verb that reads standard input as a file has the same limit', () => {
  const options = process.execArgv.filter((word) => !word.startsWith('--test'));
  const words = [...options, 'src/faces/cli/main.ts', 'trace', 'www.example', '--answers', '-'];
  const { status, stderr } = spawnSync(process.execPath, words, {
    encoding: 'utf8',
    input: Buffer.alloc(FILE_MAX.manifest + 1, '\n'),
  });
  assert.equal(status, 2);
  assert.match(stderr, /standard input: the answers file is larger than 16 MiB/);
});

test('if text is expected, only a capture gives a hint about the verbs that read captures', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-hint-'));
  const remedy = (bytes: Uint8Array): string | null => {
    writeFileSync(join(directory, 'file'), bytes);
    try {
      return readText(join(directory, 'file'), 'resolv.conf');
    } catch (error) {
      return (error as Problem).remedy;
    }
  };
  const capture = pcapFile(LINK.RAW, []);
  for (const each of [capture, Buffer.from('snoop\0\0\0\0\0\0\u0002', 'latin1')])
    assert.match(remedy(each) ?? '', /ndots capture FILE/);
  const others = [
    '\u007fELF\u0002\u0001',
    '\u0089PNG',
    '%PDF-1.7',
    '\0\u0001\u0002\u0003\u0004\u0005',
  ];
  for (const each of others)
    assert.equal(remedy(Buffer.from(each, 'latin1')), 'Text is expected here.');
  assert.match(remedy(gzipSync(capture)) ?? '', /^Decompress it first/);
  rmSync(directory, { recursive: true });
});

test('reports the kind of a binary file if text is expected', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-binary-'));
  const told = (bytes: Uint8Array): string => {
    writeFileSync(join(directory, 'file'), bytes);
    try {
      return readText(join(directory, 'file'), 'list of queries');
    } catch (error) {
      return (error as Problem).message.slice(directory.length);
    }
  };
  const capture = pcapFile(LINK.RAW, []);
  assert.equal(told(capture), '/file: cannot read the list of queries: it is a capture');
  assert.equal(
    told(gzipSync('a')),
    '/file: cannot read the list of queries: it is compressed with gzip',
  );
  assert.equal(told(Buffer.from('a.example\n')), 'a.example\n');
  await assert.rejects(
    readStream(Readable.from([Buffer.from(capture)]), 'Corefile', 1024),
    /standard input: cannot read the Corefile: it is a capture/,
  );
  rmSync(directory, { recursive: true });
});
