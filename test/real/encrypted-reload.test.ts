import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { printed, start } from '../kit/child.ts';
import { queryBytes, StreamClient } from '../kit/loopback.ts';
import { freePorts } from '../kit/free-ports.ts';

/** @returns false if openssl is not installed */
function renew(directory: string, name: string): boolean {
  const words = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const files = ['-keyout', join(directory, 'key.pem'), '-out', join(directory, 'cert.pem')];
  return spawnSync('openssl', [...words, '-subj', `/CN=${name}`, ...files]).status === 0;
}

async function shakeHands(port: number): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  return socket;
}

describe('a reload', () => {
  test('brings a renewed certificate and other limits to listeners that stay open', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-renewed-'));
    t.after(() => rmSync(directory, { recursive: true, force: true }));
    if (!renew(directory, 'first.example')) return t.skip('openssl is not installed');
    const [port] = await freePorts(1);
    const write = (limits: string): void =>
      writeFileSync(
        join(directory, 'Corefile'),
        `tls://.:${port} {\n bind 127.0.0.1\n tls cert.pem key.pem\n ${limits}\n whoami\n}\n`,
      );
    write('');
    const child = start('ndots', ['bin/ndots', 'serve', '-conf', join(directory, 'Corefile')]);
    t.after(() => child.stop());
    await printed(child, /ndots-\d/, 20_000);
    const before = await shakeHands(port);
    t.after(() => before.destroy());
    assert.equal(before.getPeerCertificate().subject.CN, 'first.example');
    const stream = new StreamClient(before);
    stream.send(queryBytes('a.', 1));
    assert.equal((await stream.next())!.readUInt16BE(0), 1);

    renew(directory, 'second.example');
    write('limits {\n  connections 1\n }');
    child.signal('SIGUSR1');
    await printed(child, /Reloading complete/, 20_000);
    stream.send(queryBytes('a.', 2));
    assert.equal((await stream.next())!.readUInt16BE(0), 2, 'open connections stay');
    const after = await shakeHands(port);
    t.after(() => after.destroy());
    assert.equal(after.getPeerCertificate().subject.CN, 'second.example');
    assert.ok(await stream.ended(), 'the idle one makes room: there may be one connection now');
  });
});
