import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { systemClock } from '../../base/clock.ts';
import { HostsBuilder } from './builder.ts';
import { entrySteps } from './entries.ts';
import { HostsFile } from './file.ts';

const folder = mkdtempSync(join(tmpdir(), 'ndots-hosts-file-'));
after(() => rmSync(folder, { recursive: true }));

describe('a hosts file', () => {
  test('of one line of many words holds up what else the thread has to do no longer than one of many lines', async () => {
    const path = join(folder, 'long');
    const crowded = Array.from({ length: 999 }, (_, i) => `10.1.${i >> 8}.${i & 255} a`).join('\n');
    writeFileSync(path, `${crowded}\n10.1.3.230 ${'a '.repeat(50_000)}\n10.2.2.2 last.example\n`);
    const file = new HostsFile(path, systemClock, {} as never);
    const builder = new HostsBuilder();
    const terms = { wanted: () => true, reverse: true };
    const cpu = process.cpuUsage();
    let reads = true;
    const reading = file
      .read((line) => entrySteps(line, terms, builder))
      .finally(() => (reads = false));
    let turns = 0;
    for (; reads; turns++) await setImmediate();
    const ms = process.cpuUsage(cpu).user / 1000;
    assert.equal(await reading, true);
    assert.equal(builder.count, 2 * (999 + 50_000 + 1));
    assert.ok(turns > ms / 50, `${turns} turns in ${ms} ms`);
  });
});
