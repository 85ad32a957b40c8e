import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

const nodeWords = process.execArgv.filter((word) => !word.startsWith('--test'));

interface Running {
  readonly child: ChildProcess;
  readonly output: { out: string; err: string };
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
}

function run(t: TestContext, words: readonly string[]): Running {
  const child = spawn(process.execPath, [...nodeWords, ...words], {
    cwd: join(import.meta.dirname, '../../..'),
  });
  t.after(() => child.kill('SIGKILL'));
  const output = { out: '', err: '' };
  child.stdout.on('data', (text) => (output.out += text));
  child.stderr.on('data', (text) => (output.err += text));
  const ended = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as string | null,
  }));
  return { child, output, ended };
}

async function printed({ child, output }: Running, pattern: RegExp): Promise<void> {
  while (!pattern.test(output.out + output.err)) {
    assert.equal(child.exitCode, null, output.err);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe('Ctrl-C', () => {
  test('ends a load immediately, with the results so far', async (t) => {
    const asked = Promise.withResolvers<void>();
    let queries = 0;
    const server = createSocket('udp4', (query, from) => {
      query[2]! |= 0x80;
      server.send(query, from.port, from.address);
      if (++queries === 20) asked.resolve();
    });
    server.bind(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const target = `127.0.0.1:${server.address().port}`;
    const bench = run(t, [
      'src/faces/cli/main.ts',
      'bench',
      target,
      '--for',
      '10m',
      '--rate',
      '50',
    ]);
    await Promise.race([asked.promise, bench.ended]);
    bench.child.kill('SIGINT');
    assert.deepEqual(await bench.ended, { code: 130, signal: null });
    assert.match(bench.output.out, /^sent +\d+$/m);
  });

  test('ends the wait between two metrics samples, without a stack trace', async (t) => {
    const server = createServer((_, response) => response.end('process_cpu_seconds_total 1\n'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.closeAllConnections());
    t.after(() => void server.close());
    const asked = once(server, 'request');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
    const size = run(t, ['src/faces/cli/main.ts', 'size', '--metrics', url, '--for', '10m']);
    await Promise.race([asked, size.ended]);
    await new Promise((resolve) => setTimeout(resolve, 300));
    size.child.kill('SIGINT');
    assert.deepEqual(await size.ended, { code: 130, signal: null });
    assert.match(size.output.err, /^ndots size: measuring .* for 600 s …\n$/);
  });

  test('ends a verb that ignores it after a second', async (t) => {
    const silent = createSocket('udp4').bind(0, '127.0.0.1');
    await once(silent, 'listening');
    t.after(() => silent.close());
    const asked = once(silent, 'message');
    const words = ['check', 'run', '--vip', `127.0.0.1:${silent.address().port}`];
    const check = run(t, ['src/faces/cli/main.ts', ...words]);
    await Promise.race([asked, check.ended]);
    check.child.kill('SIGINT');
    assert.deepEqual(await check.ended, { code: 130, signal: null });
  });

  test('a second time ends the process, whatever it is doing', async (t) => {
    const stubborn = run(t, [
      '--input-type=module',
      '-e',
      `import { untilSignal } from './src/faces/cli/until-signal.ts';
       setInterval(() => undefined, 1000);
       untilSignal().addEventListener('abort', () => console.log('asked'));
       console.log('ready');`,
    ]);
    await printed(stubborn, /ready/);
    stubborn.child.kill('SIGINT');
    await printed(stubborn, /asked/);
    stubborn.child.kill('SIGINT');
    assert.deepEqual(await stubborn.ended, { code: null, signal: 'SIGINT' });
  });
});

test('a verb that runs until a signal continues if its log is on a full disk', async (t) => {
  const full = openSync('/dev/full', 'w');
  const words = [
    'src/faces/cli/main.ts',
    'check',
    'serve',
    '--listen',
    '127.0.0.1:19154',
    '--vip',
    '127.0.0.1',
  ];
  const child = spawn(process.execPath, [...nodeWords, ...words], {
    cwd: join(import.meta.dirname, '../../..'),
    stdio: ['ignore', full, 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  closeSync(full);
  const ended = once(child, 'exit');
  const early = await Promise.race([ended, pause(4000, null)]);
  assert.equal(early, null, 'it ended');
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});
