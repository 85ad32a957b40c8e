import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';

describe('root', () => {
  test('relative files are looked up below it, wherever the line is in the block', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-root-'));
    t.after(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, 'names'), '10.0.0.1 a.example.org\n');
    const world = await makeWorld(`.:53 {\n hosts names\n root ${directory}\n}`);
    assert.equal((await world.ask('a.example.org. A')).answer.length, 1);
    assert.deepEqual(world.log, []);
    await world.close();
  });

  test('without it they are relative to the Corefile', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-root-'));
    t.after(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, 'names'), '10.0.0.1 a.example.org\n');
    const world = await makeWorld('.:53 {\n hosts names\n}', { directory });
    assert.equal((await world.ask('a.example.org. A')).answer.length, 1);
    await world.close();
  });

  test('a missing directory only causes a warning', async () => {
    const world = await makeWorld('.:53 {\n root /no/such/folder\n}');
    assert.deepEqual(world.log, [
      '[WARNING] plugin/root: Root path does not exist: /no/such/folder',
    ]);
    await world.close();
    await assert.rejects(makeWorld('.:53 {\n root\n}'), /Wrong argument count/);
  });
});
