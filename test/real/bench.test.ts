import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { readMessage } from '../../src/server/wire/message.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess, type ServeProcess } from '../kit/serve-process.ts';

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

const bench = (...words: string[]): Promise<Ran> => benchOf('', ...words);

/** @param input the program's standard input */
function benchOf(input: string, ...words: string[]): Promise<Ran> {
  return new Promise((done) => {
    const child = spawn('bin/ndots', ['bench', ...words]);
    child.stdin.end(input);
    const text = { out: '', err: '' };
    child.stdout.on('data', (chunk: Buffer) => (text.out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (text.err += chunk.toString()));
    child.on('close', (code) => done({ code, ...text }));
  });
}

describe('ndots bench', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-bench-'));
  let server: ServeProcess;
  before(async () => {
    server = await serveProcess(
      `kubernetes cluster.local {\n manifests ${resolve('examples/cluster')}\n}`,
    );
  });
  after(async () => {
    await server.stop();
    rmSync(directory, { recursive: true });
  });

  test('sends the queries of a log, as often and in the same order', async () => {
    const log = join(directory, 'coredns.log');
    const line = (name: string, type: string): string =>
      `[INFO] 10.244.0.9:41000 - 29008 "${type} IN ${name} udp 41 false 512" NOERROR qr,rd,ra 68 0.000990251s\n`;
    const there = 'backend.critical-app.svc.cluster.local.';
    writeFileSync(log, line(there, 'A').repeat(3) + line(`no.${there}`, 'AAAA'));
    const target = `127.0.0.1:${server.port}`;
    const words = ['--recorded', log, '--rate', '400', '--for', '2'];
    const { code, out } = await bench(target, ...words, '-o', 'json');
    const [load] = JSON.parse(out) as [{ sent: number; rcodes: Record<string, number> }];
    assert.equal(code, 0);
    assert.deepEqual(load.rcodes, { NOERROR: 600, NXDOMAIN: 200 });
    assert.match((await bench(target, ...words)).out, /: 4 queries of .*coredns\.log$/m);
    const none = join(directory, 'none.log');
    writeFileSync(none, 'nothing\n');
    const refused = await bench(target, '--recorded', none);
    assert.equal(refused.code, 2);
    assert.match(refused.err, /none\.log contains no queries/);
  });

  test('sends the EDNS sizes of a recording from standard input', async () => {
    const line = (size: number): string =>
      `[INFO] 10.244.0.9:41000 - 29008 "A IN backend.critical-app.svc.cluster.local. udp 41 false ${size}" NOERROR qr,rd,ra 68 0.000990251s\n`;
    const sizes: number[] = [];
    const seen = createSocket('udp4');
    seen.on('message', (bytes, { port }) => {
      sizes.push(readMessage(bytes).edns?.udpSize ?? 0);
      bytes[2]! |= 0x80;
      seen.send(bytes, port, '127.0.0.1');
    });
    await new Promise<void>((bound) => seen.bind(0, '127.0.0.1', bound));
    const words = ['--recorded', '-', '--rate', '100', '--for', '1', '--clients', '1'];
    const { code, out, err } = await benchOf(
      line(512) + line(1232),
      `127.0.0.1:${seen.address().port}`,
      ...words,
    );
    seen.close();
    assert.deepEqual([code, err], [0, ''], out);
    assert.match(out, /: 2 queries of standard input$/m);
    assert.deepEqual(new Set(sizes.filter((_, nth) => nth % 2 === 0)), new Set([0]));
    assert.deepEqual(new Set(sizes.filter((_, nth) => nth % 2 === 1)), new Set([1232]));
  });

  test('a server without a route is reported, and nothing is measured', () => {
    const words = ['-n', 'bin/ndots', 'bench', '192.0.2.1:53', '--for', '1'];
    const alone = spawnSync('unshare', words, { encoding: 'utf8' });
    if (/unshare/.test(alone.stderr)) return;
    assert.equal(alone.status, 2);
    assert.equal(
      alone.stderr,
      'ndots bench: cannot send to 192.0.2.1:53: there is no route to it [load-server]\n',
    );
  });

  test("sends glibc's queries for a name in a pod, and the server receives all of them", async () => {
    const names = join(directory, 'names');
    writeFileSync(names, '# one\nbackend.critical-app\n');
    const before = await server.sum('coredns_dns_requests_total');
    const { code, out } = await bench(
      `127.0.0.1:${server.port}`,
      '--names',
      names,
      '--rate',
      '400',
      '--for',
      '2',
      '-o',
      'json',
    );
    const [load] = JSON.parse(out) as [
      { sent: number; lost: number; rcodes: Record<string, number> },
    ];
    assert.deepEqual([code, load.sent, load.lost], [0, 800, 0], out);
    assert.equal((await server.sum('coredns_dns_requests_total')) - before, 800);
    // A and AAAA queries with each of three suffixes and without one, in order. The second name exists, and no plugin
    // handles the last.
    assert.deepEqual(load.rcodes, { NXDOMAIN: 400, NOERROR: 200, SERVFAIL: 200 });
  });

  test('compares two servers, and shows the losses of a closed port', async () => {
    const [nobody] = await freePorts(1);
    const words = [
      `127.0.0.1:${server.port}`,
      `127.0.0.1:${nobody}`,
      '--rate',
      '200',
      '--for',
      '2',
      '--timeout',
      '1',
    ];
    const { code, out } = await bench(...words);
    assert.equal(code, 1);
    assert.match(out, /^lost +0 \(0\.00 %\) +200 \(100\.00 %\)$/m);
    assert.match(out, /^p99 +[\d.]+ (?:µs|ms) +-$/m);
  });

  for (const [words, wanted, exit] of [
    [[], /which server\?/, 3],
    [['dns.example'], /is not an IP address/, 3],
    [['127.0.0.1', '--client', 'glib'], /Did you mean glibc/, 3],
    [['127.0.0.1', '--recorded', 'x.log', '--client', 'musl'], /contains complete queries/, 3],
    [['127.0.0.1', '--names', '/nowhere'], /no such file or directory/, 2],
  ] as const)
    test(`"${words.join(' ')}" is a mistake that is explained`, async () => {
      const { code, err } = await bench(...words);
      assert.match(err, wanted);
      assert.equal(code, exit);
    });

  test('an error in a file of names is reported with its line', async () => {
    const names = join(directory, 'wrong');
    writeFileSync(names, 'a.example A\nb.example NOPE\n');
    const { code, err } = await bench('127.0.0.1', '--names', names);
    assert.match(err, /"b\.example NOPE" is not NAME or NAME TYPE.*wrong:2:1/s);
    assert.equal(code, 2);
  });
});
