/** Tests the shell that deploy/node-cache runs in a separate container, with a cache that is killed. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';

interface Container {
  readonly name: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
}

/** Returns the script of the DaemonSet's `teardown` container. */
function readerScript(): string {
  const text = readFileSync('deploy/node-cache/node-local-dns.yaml', 'utf8');
  const daemon = parseAllDocuments(text)
    .map((document) => document.toJS() as ReturnType<typeof JSON.parse>)
    .find(({ kind }) => kind === 'DaemonSet');
  const { containers } = daemon.spec.template.spec as { containers: readonly Container[] };
  const { command, args } = containers.find(({ name }) => name === 'teardown')!;
  assert.deepEqual(command, ['/bin/sh', '-c']);
  return args[0]!;
}

async function until(what: () => boolean, text: string): Promise<void> {
  for (let tries = 0; !what(); tries++) {
    assert.ok(tries < 3000, text);
    await pause(10);
  }
}

/** Starts a reader, and a substitute for the cache that writes its lines and, on request, `release`. */
async function pair(t: TestContext): Promise<{
  readonly reader: ChildProcess;
  readonly directory: string;
  startCache(line: string): Promise<ChildProcess>;
}> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-teardown-'));
  const script = readerScript().replaceAll('/run/teardown', directory);
  const reader = spawn('/bin/sh', ['-c', script], { stdio: 'ignore' });
  const caches: ChildProcess[] = [];
  t.after(() => {
    for (const each of [reader, ...caches]) each.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });
  await until(() => existsSync(join(directory, 'pipe')), 'the pipe is not made');
  const startCache = async (line: string): Promise<ChildProcess> => {
    const program = `
      const { TeardownPipe } = await import(${JSON.stringify(resolve('src/server/nodelocal/teardown-shell.ts'))});
      const pipe = new TeardownPipe(${JSON.stringify(join(directory, 'pipe'))}, () => [${JSON.stringify(line)}]);
      const timer = setInterval(() => { pipe.ensure(); if (pipe.isRead) process.send('read'); }, 10);
      process.on('message', () => { clearInterval(timer); pipe.release(); process.exit(0); });
    `;
    const cache = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    caches.push(cache);
    await once(cache, 'message');
    return cache;
  };
  return { reader, directory, startCache };
}

describe('a cache whose teardown is in another container', () => {
  test('leaves nothing behind when it is killed, again and again', async (t) => {
    const { directory, startCache } = await pair(t);
    for (const nth of ['one', 'two']) {
      const cache = await startCache(`echo "it is over" > ${directory}/${nth}`);
      assert.equal(existsSync(join(directory, nth)), false);
      cache.kill('SIGKILL');
      await until(() => existsSync(join(directory, nth)), `${nth} was not run`);
    }
  });

  test('has nothing removed when it ends in order, or hands over', async (t) => {
    const { directory, startCache } = await pair(t);
    const first = await startCache(`: > ${directory}/first`);
    first.send('release');
    await once(first, 'exit');
    // That the second one is run shows that the reader has finished with the first.
    const second = await startCache(`: > ${directory}/second`);
    second.kill('SIGKILL');
    await until(() => existsSync(join(directory, 'second')), 'the second was not run');
    assert.equal(existsSync(join(directory, 'first')), false);
  });

  test('the shell does not keep its pod from ending, with or without a cache', async (t) => {
    const waiting = await pair(t);
    waiting.reader.kill('SIGTERM');
    await once(waiting.reader, 'exit');
    const reading = await pair(t);
    await reading.startCache(`: > ${reading.directory}/gone`);
    reading.reader.kill('SIGTERM');
    await once(reading.reader, 'exit');
    assert.equal(existsSync(join(reading.directory, 'gone')), false);
  });
});
