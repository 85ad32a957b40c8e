import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { whyFailed } from './why-failed.ts';
import { readFileLines, readFileText, readGivenBytes } from './read-file.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-read-'));
after(() => rmSync(directory, { recursive: true }));
const at = (name: string): string => join(directory, name);

describe('reading a file', () => {
  test('a regular file and a link to one are read completely', () => {
    writeFileSync(at('text'), 'größe');
    symlinkSync(at('text'), at('link'));
    assert.equal(readFileText(at('text'), 100), 'größe');
    assert.equal(readFileText(at('link'), 100), 'größe');
    writeFileSync(at('empty'), '');
    assert.equal(readFileText(at('empty'), 100), '');
  });

  test('a file that reports no size is read completely', () => {
    assert.match(readFileText('/proc/self/status', 65_536), /^Name:/);
  });

  test('a named pipe without a writer is refused at once', () => {
    execFileSync('mkfifo', [at('pipe')]);
    assert.throws(() => readFileText(at('pipe'), 100), { code: 'ENOTREG', message: /named pipe/ });
  });

  test('a pipe named by the user is read to its end, within the limit', () => {
    const script =
      'import { readGivenBytes } from "./src/server/base/read-file.ts"; console.log(String(readGivenBytes(process.argv[1], 20)))';
    const words = ['--input-type=module-typescript', '-e', script];
    const read = (given: string) =>
      spawnSync('bash', ['-c', `"$0" "$@" <(printf ${given})`, process.execPath, ...words], {
        encoding: 'utf8',
      });
    assert.equal(read('größe').stdout, 'größe\n');
    assert.match(read('x%.0s {1..30}').stderr, /EFBIG/);
    assert.throws(() => readGivenBytes('/dev/zero', 100), { code: 'ENOTREG' });
  });

  test('the null device is an empty file, for options that require a file name', () => {
    assert.equal(readFileText('/dev/null', 100), '');
    assert.deepEqual([...readFileLines('/dev/null', 100)], []);
    symlinkSync('/dev/null', at('nothing'));
    assert.equal(readFileText(at('nothing'), 100), '');
  });

  test('an endless device is refused, and so is a directory', () => {
    assert.throws(() => readFileText('/dev/zero', 100), { code: 'ENOTREG', message: /device/ });
    assert.throws(() => readFileText(directory, 100), { code: 'EISDIR' });
    assert.throws(() => readFileText(at('none'), 100), { code: 'ENOENT' });
  });

  test('a file of exactly the maximum size is read; one byte more is refused', () => {
    writeFileSync(at('full'), 'x'.repeat(5000));
    assert.equal(readFileText(at('full'), 5000).length, 5000);
    assert.throws(() => readFileText(at('full'), 4999), { code: 'EFBIG' });
    assert.throws(() => readFileText('/proc/self/status', 20), { code: 'EFBIG' });
  });

  test('the reason is in words, without the path, which is already in the message', () => {
    const reason = (path: string): string => {
      try {
        return readFileText(path, 100);
      } catch (error) {
        return whyFailed(error);
      }
    };
    assert.equal(reason(at('none')), 'no such file or directory');
    assert.equal(reason(directory), 'it is a directory');
  });
});

describe('reading lines', () => {
  test('yields the text between line feeds, wherever the chunks end', () => {
    for (const unit of [
      'ä\n',
      'größe and more\n\n',
      `${'x'.repeat(65_535)}ü\n`,
      'no end at all ',
    ]) {
      const text = unit.repeat(Math.ceil(200_000 / unit.length));
      writeFileSync(at('lines'), text);
      const lines = text.split('\n');
      if (lines.at(-1) === '') lines.pop();
      assert.deepEqual([...readFileLines(at('lines'), 1_000_000)], lines);
    }
    writeFileSync(at('lines'), '');
    assert.deepEqual([...readFileLines(at('lines'), 1)], []);
  });

  test('refuses the same files as a complete read, and closes the file', () => {
    writeFileSync(at('large'), 'a\nb\n');
    assert.throws(() => [...readFileLines(at('large'), 3)], { code: 'EFBIG' });
    assert.throws(() => [...readFileLines('/dev/zero', 100)], { code: 'ENOTREG' });
    assert.throws(() => [...readFileLines('/proc/self/status', 10)], { code: 'EFBIG' });
    const open = readdirSync('/proc/self/fd').length;
    for (const _ of readFileLines(at('large'), 100)) break;
    assert.equal(readdirSync('/proc/self/fd').length, open);
  });
});
