import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { pod, service, slice } from '../../../../test/kit/apiserver/populate.ts';
import { elapse, makeRig, until, type RigOptions } from '../../../../test/kit/apiserver/rig.ts';
import type { Fault } from '../../../../test/kit/apiserver/faults.ts';
import { ApiServer } from '../../../../test/kit/apiserver/server.ts';
import { endpointConnection } from '../api/connection.ts';
import { readSnapshot } from './snapshot-file.ts';

function directory(t: TestContext): string {
  const made = mkdtempSync(join(tmpdir(), 'ndots-'));
  t.after(() => rmSync(made, { recursive: true }));
  return made;
}

/**
 * Runs a source once against a server, so that it leaves its file behind. Returns a function that runs another source.
 */
async function leaveFile(
  t: TestContext,
  file: string,
  fault: Fault = { kind: 'status', status: 503 },
): Promise<(options?: RigOptions) => RigOptions> {
  const server = await ApiServer.start();
  t.after(() => server.stop());
  // The file belongs to one server, which is identified by its address.
  const connection = endpointConnection(server.url);
  await using rig = await makeRig({
    connection: () => connection,
    source: { snapshotFile: file },
  });
  for (let i = 0; i < 50; i++) {
    server.put('services', service(i));
    server.put('endpointslices', slice(i, i, 2));
    server.put('pods', pod(i, 1));
  }
  rig.start();
  await until(() => rig.source.synced);
  server.faults.add({ fault });
  return (options = {}) => ({
    connection: () => connection,
    ...options,
    source: { snapshotFile: file, ...options.source },
  });
}

describe('a state stored on disk', () => {
  test('is served after a restart while the API server is unavailable', async (t) => {
    const file = join(directory(t), 'state');
    const again = await leaveFile(t, file);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    await using rig = await makeRig(again());
    rig.start();
    await until(() => rig.source.synced);
    assert.equal(rig.heard.names('Service').length, 50);
    assert.equal(rig.heard.names('Pod').length, 50);
    assert.match(rig.lines.join('\n'), /does not answer: serving 152 objects as they were 0s ago/);
    assert.equal([...rig.source.snapshot()].length, 152);
  });

  test('is replaced by the first list, which reports only the differences', async (t) => {
    const file = join(directory(t), 'state');
    const server = await ApiServer.start();
    t.after(() => server.stop());
    const connection = endpointConnection(server.url);
    const options: RigOptions = { connection: () => connection, source: { snapshotFile: file } };
    for (let i = 0; i < 10; i++) server.put('services', service(i));
    server.put('endpoints', { metadata: { name: 'x', namespace: 'default' }, subsets: [] });
    {
      await using rig = await makeRig(options);
      rig.start();
      await until(() => rig.source.synced);
    }
    server.delete('services', 'team-3', 'service-3');
    server.put('services', service(10));
    const lift = server.faults.add({ fault: { kind: 'status', status: 503 } });
    await using rig = await makeRig(options);
    rig.start();
    await until(() => rig.source.synced);
    rig.heard.forget();
    lift();
    await elapse(rig.clock, 10_000, () => server.watches.size === 4);
    await until(() => rig.heard.all.length >= 2);
    assert.deepEqual(rig.heard.all.map((change) => change.verb).sort(), ['delete', 'put']);
    assert.equal(rig.heard.syncedKinds.length, 4, 'each kind is synced once');
  });

  test('keeps the slices of core Endpoints together', async (t) => {
    const file = join(directory(t), 'state');
    const server = await ApiServer.start({
      minor: 16,
      without: ['discovery.k8s.io/v1', 'discovery.k8s.io/v1beta1'],
    });
    t.after(() => server.stop());
    const connection = endpointConnection(server.url);
    const options: RigOptions = { connection: () => connection, source: { snapshotFile: file } };
    server.put('endpoints', {
      metadata: { name: 'web', namespace: 'default' },
      subsets: [{ addresses: [{ ip: '10.0.0.1' }] }, { addresses: [{ ip: '10.0.0.2' }] }],
    });
    {
      await using rig = await makeRig(options);
      rig.start();
      await until(() => rig.source.synced);
    }
    const lift = server.faults.add({ fault: { kind: 'status', status: 503 } });
    await using rig = await makeRig(options);
    rig.start();
    await until(() => rig.source.synced);
    assert.deepEqual(rig.heard.names('EndpointSlice'), ['web', 'web#1']);
    rig.heard.forget();
    lift();
    await elapse(rig.clock, 10_000, () => server.watches.size === 4);
    assert.deepEqual(rig.heard.all, []);
  });

  test('is not used if the API server answers', async (t) => {
    const file = join(directory(t), 'state');
    await leaveFile(t, file);
    const before = readFileSync(file, 'utf8');
    await using rig = await makeRig({ source: { snapshotFile: file } });
    rig.start();
    await until(() => rig.source.synced);
    assert.equal(rig.heard.names('Service').length, 0);
    assert.equal(readFileSync(file, 'utf8'), before);
    assert.deepEqual(rig.lines, []);
  });

  test('is written a second after everything has been listed', async (t) => {
    const file = join(directory(t), 'state');
    await using rig = await makeRig({ source: { snapshotFile: file } });
    rig.server.put('services', service(1));
    rig.start();
    await until(() => rig.source.synced);
    assert.ok(!existsSync(file));
    await rig.clock.advance(1000);
    await until(() => existsSync(file));
    assert.match(readFileSync(file, 'utf8'), /service-1/);
  });

  test('is written once a minute while there are changes', async (t) => {
    const file = join(directory(t), 'state');
    await using rig = await makeRig({ source: { snapshotFile: file } });
    rig.start();
    await until(() => rig.source.synced);
    rig.server.put('services', service(1));
    await until(() => rig.heard.names('Service').length === 1);
    await elapse(rig.clock, 61_000, () => readdirSync(join(file, '..')).includes('state'));
    assert.match(readFileSync(file, 'utf8'), /service-1/);
  });

  test('is used if the API server neither answers nor refuses', async (t) => {
    const file = join(directory(t), 'state');
    const again = await leaveFile(t, file, { kind: 'hang' });
    const silent = await makeRig(again());
    silent.start();
    await elapse(silent.clock, 4000, () => silent.source.synced);
    await silent[Symbol.asyncDispose]();
  });

  const damages: readonly [string, (text: string) => string, RegExp][] = [
    ['cut off', (text) => text.slice(0, -200), /cut off/],
    ['empty', () => '', /cut off/],
    ['changed in one character', (text) => text.replace('service-7"', 'service-x"'), /checksum/],
    ['something else', () => 'hello\nworld\n', /cut off/],
  ];
  for (const [name, damage, words] of damages) {
    test(`that is ${name} is ignored with a warning`, async (t) => {
      const file = join(directory(t), 'state');
      const again = await leaveFile(t, file);
      writeFileSync(file, damage(readFileSync(file, 'utf8')));
      await using rig = await makeRig(again());
      rig.start();
      await until(() => rig.lines.some((line) => line.includes('is not used')));
      assert.match(rig.lines.join('\n'), words);
      assert.equal(rig.source.synced, false);
      assert.deepEqual(rig.heard.all, []);
    });
  }

  test('that is a named pipe without a writer is rejected at once', (t) => {
    const file = join(directory(t), 'state');
    execFileSync('mkfifo', [file]);
    assert.throws(
      () =>
        readSnapshot(
          file,
          () => true,
          () => undefined,
        ),
      /not a regular file/,
    );
  });

  test('from another server, for other resources or too old is not used', async (t) => {
    const file = join(directory(t), 'state');
    const again = await leaveFile(t, file);
    {
      await using rig = await makeRig(again({ wanted: { pods: false } }));
      rig.start();
      await until(() =>
        rig.lines.some((line) => line.includes('another API server or configuration')),
      );
      assert.equal(rig.source.synced, false);
    }
    {
      await using rig = await makeRig(again());
      await rig.clock.advance(25 * 3600 * 1000);
      rig.start();
      await until(() => rig.lines.some((line) => line.includes('too old (25h0m0s)')));
      assert.equal(rig.source.synced, false);
    }
  });

  test('that cannot be written is reported, and nothing else is affected', async (t) => {
    const file = join(directory(t), 'missing', 'state');
    await using rig = await makeRig({ source: { snapshotFile: file } });
    rig.server.put('services', service(1));
    rig.start();
    await until(() => rig.source.synced);
    await elapse(rig.clock, 61_000, () => rig.lines.length > 0);
    assert.match(rig.lines[0]!, /cannot write .*: no such file or directory/);
  });
});
