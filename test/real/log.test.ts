import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { answered, printed, start } from '../kit/child.ts';
import { queryBytes, UdpClient } from '../kit/loopback.ts';
import { freePorts } from '../kit/free-ports.ts';

const program = 'bin/ndots';

async function corefile(
  t: TestContext,
): Promise<{ file: string; port: number; metrics: () => Promise<string> }> {
  const folder = mkdtempSync(join(tmpdir(), 'ndots-log-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [port, metrics] = await freePorts(2);
  const file = join(folder, 'Corefile');
  writeFileSync(
    file,
    `.:${port} {\n bind 127.0.0.1\n prometheus 127.0.0.1:${metrics}\n log\n whoami\n}\n`,
  );
  return {
    file,
    port,
    metrics: async () => (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text(),
  };
}

describe('the log of queries', () => {
  test('is whole when the process is ended right after them', async (t) => {
    const { file, port } = await corefile(t);
    const child = start('ndots', [program, 'serve', '-conf', file, '-workers', '2']);
    t.after(() => child.stop());
    await printed(child, /ndots-\d/, 20_000);
    const clients = await Promise.all(Array.from({ length: 8 }, () => UdpClient.open()));
    t.after(() => clients.forEach((client) => client.close()));
    for (let i = 0; i < 20; i++) {
      for (const client of clients) client.send(queryBytes(`q${i}.example.`, i), port);
      await Promise.all(clients.map((client) => client.next(5000)));
    }
    child.signal('SIGTERM');
    assert.equal(await child.exitCode, 0);
    assert.equal(child.output().match(/"A IN q\d+\.example\. udp/g)?.length, 160);
    assert.match(child.output(), /\[INFO\] SIGTERM: Shutting down/);
  });

  test('keeps no answer waiting when nobody reads it, and not the end of the process either', async (t) => {
    const { file, port, metrics } = await corefile(t);
    const child = spawn(program, ['serve', '-conf', file, '-log-buffer', '64'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    t.after(() => void child.kill('SIGKILL'));
    await answered(port, 'first.example.', 20_000, () => true);
    const client = await UdpClient.open();
    t.after(() => client.close());
    let slowestMs = 0;
    for (let i = 0; i < 5000; i++) {
      const begun = performance.now();
      client.send(queryBytes(`${'x'.repeat(60)}.q${i}.example.`, i), port);
      assert.equal((await client.next(5000))?.bytes.readUInt16BE(0), i);
      slowestMs = Math.max(slowestMs, performance.now() - begun);
    }
    assert.ok(slowestMs < 1000, `${slowestMs} ms`);
    const text = await metrics();
    assert.match(text, /^ndots_log_lost_lines_total [1-9]/m);
    const begun = performance.now();
    const ended = new Promise<number | null>((resolve) => {
      child.on('exit', (code) => resolve(code));
    });
    child.kill('SIGTERM');
    assert.equal(await ended, 0);
    assert.ok(performance.now() - begun < 5000);
  });
});
