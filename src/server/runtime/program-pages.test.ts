import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { batchedUdp } from './packet-loop.ts';
import { unmapUnusedCode } from './program-pages.ts';

const found = batchedUdp();

/** Resident size of mapped files, in KiB. */
function residentFiles(): number {
  return Number(/^RssFile:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);
}

test(
  'startup-only code takes no memory afterwards, and all code still runs',
  { skip: found.available ? false : found.reason },
  async () => {
    const before = residentFiles();
    unmapUnusedCode();
    const after = residentFiles();
    assert.ok(after < before / 2, `${before} KiB of files were in memory, ${after} are now`);
    const { createHash } = await import('node:crypto');
    assert.equal(createHash('sha256').update('ndots').digest('hex').length, 64);
    assert.equal(new Intl.NumberFormat('de').format(1234.5), '1.234,5');
  },
);
