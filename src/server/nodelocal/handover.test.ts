import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { makeLog } from '../base/log.ts';
import { Handover, findPredecessor, meetingPoint } from './handover.ts';

const log = makeLog(
  () => undefined,
  () => false,
);

describe('where instances on a node meet', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-meeting-'));
  after(() => rmSync(directory, { recursive: true }));
  const path = meetingPoint(directory);
  const instance = async (cacheBytes = 3): Promise<Handover> => {
    const made = new Handover({
      path,
      log,
      cache: () => Promise.resolve(new Uint8Array(cacheBytes)),
      release: () => Promise.resolve(),
    });
    const before = existsSync(path);
    made.listen();
    while (!existsSync(path) || (before && readdirSync(directory).length > 1))
      await new Promise((done) => setTimeout(done, 5));
    return made;
  };

  test('one that ends leaves nothing there', async () => {
    const only = await instance();
    assert.deepEqual(await (await findPredecessor(path, log))?.cache, Buffer.alloc(3));
    only.close();
    assert.deepEqual(readdirSync(directory), []);
  });

  test('an instance with larger caches than the handover limit still hands over a part of them', async () => {
    const only = await instance(65 * 1024 * 1024);
    assert.equal((await findPredecessor(path, log))?.cache.length, 64 * 1024 * 1024);
    only.close();
  });

  test("one that ends does not remove its successor's socket", async () => {
    const first = await instance();
    const second = await instance();
    first.close();
    assert.equal((await findPredecessor(path, log))?.cache.length, 3);
    second.close();
    second.close();
    assert.deepEqual(readdirSync(directory), []);
  });
});
