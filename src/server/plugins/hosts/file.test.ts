import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { HostsBuilder } from './builder.ts';
import { entrySteps } from './entries.ts';
import { HostsFile } from './file.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-hosts-file-'));
after(() => rmSync(directory, { recursive: true }));

describe('a hosts file', () => {
  test('with one line of many words yields as often as one with many lines', async () => {
    const path = join(directory, 'long');
    const crowded = Array.from({ length: 999 }, (_, i) => `10.1.${i >> 8}.${i & 255} a`).join('\n');
    writeFileSync(path, `${crowded}\n10.1.3.230 ${'a '.repeat(50_000)}\n10.2.2.2 last.example\n`);
    let looks = 0;
    const file = new HostsFile(path, { ...systemClock, now: () => looks++ }, {} as never);
    const builder = new HostsBuilder();
    const terms = { wanted: () => true, reverse: true };
    assert.equal(await file.read((line) => entrySteps(line, terms, builder)), true);
    assert.equal(builder.count, 2 * (999 + 50_000 + 1));
    // Work in slices reads the clock wherever it could yield.
    assert.ok(looks > 50_000 / 64, `${looks} looks at the clock`);
  });
});
