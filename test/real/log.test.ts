import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { answered, printed, start } from '../kit/child.ts';
import { queryBytes, UdpClient } from '../kit/loopback.ts';
import { freePorts } from '../kit/free-ports.ts';
import { logLine } from '../../src/tools/capture/read/records/log-line.ts';

const program = 'bin/ndots';

async function corefile(
  t: TestContext,
): Promise<{ file: string; port: number; metrics: () => Promise<string> }> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-log-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const [port, metrics] = await freePorts(2);
  const file = join(directory, 'Corefile');
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

  test('is JSON with -log-format json, from the first line to the last, and doctor reads it', async (t) => {
    const { file, port } = await corefile(t);
    const words = ['serve', '-conf', file, '-workers', '1', '-log-format', 'json'];
    const child = start('ndots', [program, ...words]);
    t.after(() => child.stop());
    await printed(child, /ndots-\d/, 20_000);
    const client = await UdpClient.open();
    t.after(() => client.close());
    client.send(queryBytes('Json.example.', 7), port);
    await client.next(5000);
    child.signal('SIGTERM');
    assert.equal(await child.exitCode, 0);
    const lines = child.output().trim().split('\n');
    const objects = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    for (const { time, level, msg } of objects) {
      assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.match(String(level), /^(INFO|WARN)$/);
      assert.equal(typeof msg, 'string');
    }
    assert.ok(objects.some(({ msg }) => msg === `.:${port} on 127.0.0.1`));
    assert.ok(objects.some(({ msg }) => String(msg).startsWith('SIGTERM: ')));
    const {
      time: _,
      msg,
      client_port: from,
      duration_seconds: took,
      ...query
    } = objects.find(({ qname }) => qname === 'json.example.')!;
    assert.match(
      String(msg),
      /^127\.0\.0\.1:\d+ - 7 "A IN json\.example\. udp 30 false 512" NOERROR/,
    );
    assert.ok(typeof from === 'number' && typeof took === 'number');
    const { rsize, ...rest } = query;
    assert.ok(typeof rsize === 'number' && rsize > 30);
    assert.deepEqual(rest, {
      level: 'INFO',
      client_ip: '127.0.0.1',
      qname: 'json.example.',
      qtype: 'A',
      qclass: 'IN',
      rcode: 'NOERROR',
      proto: 'udp',
      id: 7,
      opcode: 0,
      do: false,
      bufsize: 512,
      size: 30,
      rflags: 'qr,aa,rd',
    });
    const read = logLine(lines.find((line) => line.includes('json.example'))!);
    assert.equal(read.text, `[INFO] ${String(msg)}`);
  });

  test('of a configuration that cannot be served is JSON, too', async (t) => {
    const { file } = await corefile(t);
    writeFileSync(file, '.:53 {\n nonsense\n}\n');
    const { stderr, status } = spawnSync(program, ['serve', '-conf', file, '-log-format=json'], {
      encoding: 'utf8',
    });
    assert.equal(status, 1);
    const [first] = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.equal(first!['level'], 'ERROR');
    assert.match(String(first!['msg']), /nonsense/);
  });

  test('delays neither an answer nor the end of the process if its output is not read', async (t) => {
    const { file, port, metrics } = await corefile(t);
    const child = spawn(program, ['serve', '-conf', file, '-log-buffer', '64'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    t.after(() => void child.kill('SIGKILL'));
    await answered(port, 'first.example.', 20_000, () => true);
    const client = await UdpClient.open();
    t.after(() => client.close());
    // There is no reader, so an answer or exit that waited for one would never happen.
    for (let i = 0; i < 5000; i++) {
      client.send(queryBytes(`${'x'.repeat(60)}.q${i}.example.`, i), port);
      assert.equal((await client.next(60_000))?.bytes.readUInt16BE(0), i);
    }
    const text = await metrics();
    assert.match(text, /^ndots_log_lost_lines_total [1-9]/m);
    const ended = new Promise<number | null>((resolve) => {
      child.on('exit', (code) => resolve(code));
    });
    child.kill('SIGTERM');
    assert.equal(await ended, 0);
  });
});
