import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { makeLog } from '../../../server/base/log.ts';
import { removePidFile, writePidFile } from './pid-file.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-pid-'));
after(() => rmSync(directory, { recursive: true }));
const lines: string[] = [];
const log = makeLog((line) => lines.push(line));

describe('a pid file', () => {
  const file = join(directory, 'pid');

  test('is written, and removed at the end', () => {
    writePidFile(file, 17, log);
    assert.equal(readFileSync(file, 'utf8'), '17\n');
    removePidFile(file, 17);
    assert.equal(existsSync(file), false);
    removePidFile(file, 17);
    assert.deepEqual(lines, []);
  });

  test('of the next server stays', () => {
    writePidFile(file, 18, log);
    removePidFile(file, 17);
    assert.equal(readFileSync(file, 'utf8'), '18\n');
  });

  test('that is not a regular file stays: a device is not removed', () => {
    const link = join(directory, 'link');
    writeFileSync(file, '17\n');
    symlinkSync(file, link);
    removePidFile(link, 17);
    assert.equal(existsSync(link), true);
    removePidFile(directory, 17);
    assert.equal(existsSync(directory), true);
  });
});
