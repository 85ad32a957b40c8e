import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { queryBytes, UdpClient } from '../kit/loopback.ts';
import { serveProcess } from '../kit/serve-process.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-hosts-'));
after(() => rmSync(directory, { recursive: true }));

/** The limit in CoreDNS's manifests, in MiB. */
const LIMIT_MIB = 170;

test('a hosts file of a million lines is read, and read again when it changes, within the memory that a pod has', async (t) => {
  const path = join(directory, 'blocked');
  const write = (domain: string): void => {
    const lines = Array.from({ length: 1_000_000 }, (_, i) => `0.0.0.0 h${i}.${domain}\n`);
    writeFileSync(path, lines.join(''));
  };
  write('first.test');
  const server = await serveProcess(`  hosts ${path} {\n    reload 1s\n  }`);
  t.after(() => server.stop());
  const client = await UdpClient.open();
  t.after(() => client.close());
  const found = async (name: string): Promise<boolean> => {
    client.send(queryBytes(name, 7), server.port);
    const reply = await client.next(5000);
    return reply !== null && reply.bytes.readUInt16BE(6) === 1;
  };
  assert.equal(await found('h300000.first.test'), true);
  write('second.test');
  while (!(await found('h300000.second.test'))) await pause(100);
  const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8');
  const peakMiB = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)![1]) / 1024;
  t.diagnostic(`${Math.round(peakMiB)} MiB at the most`);
  assert.ok(peakMiB < LIMIT_MIB, `${peakMiB} MiB`);
});
