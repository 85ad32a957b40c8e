import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { assembleBpf, exit, ifEqual, load, map, set } from './bpf-assembler.ts';
import { ATTACH, BpfRefused, loadProgram, PROGRAM } from './bpf.ts';
import { SocketPrograms, type SentRecord } from './socket-programs.ts';
import { bootClock } from './wall-clock.ts';

const PORT = 5397;

function cgroups(): string | null {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8');
  return /^\S+ \S+ \S+ \/ (\S+) .* - cgroup2 /m.exec(mounts)?.[1] ?? null;
}

/** Attaches the programs. Returns null if that is not permitted here. */
function attached(t: TestContext, ports: readonly number[]): SocketPrograms | null {
  const root = process.platform === 'linux' ? cgroups() : null;
  if (root === null) {
    t.skip('needs cgroup v2');
    return null;
  }
  try {
    const programs = new SocketPrograms(root, ports);
    t.after(() => programs.close());
    return programs;
  } catch (error) {
    if (!(error instanceof BpfRefused) || !/EPERM|ENOSYS/.test(error.message)) throw error;
    t.skip(error.message);
    return null;
  }
}

/** Returns copies of the records of this process. */
function own(programs: SocketPrograms): (SentRecord & { readonly target: Uint8Array })[] {
  const found: (SentRecord & { readonly target: Uint8Array })[] = [];
  programs.drain((record) => {
    if (record.pid !== process.pid) return;
    const { bytes, targetAt, addressSize, cgroup, command } = record;
    const target = bytes.slice(targetAt, targetAt + addressSize);
    found.push({ ...record, bytes: bytes.slice(0, 0), cgroup, command, target });
  });
  return found;
}

test("instructions are encoded in the kernel's format", () => {
  const code = assembleBpf([
    load(4, 2, 1, 24),
    ifEqual(2, 0x3500, 'there'),
    map(1, 9),
    'there',
    set(0, -1),
    exit,
  ]);
  assert.equal(
    Buffer.from(code).toString('hex').match(/.{16}/g)!.join(' '),
    [
      '6112180000000000',
      '1502020000350000',
      '1811000009000000',
      '0000000000000000',
      'b7000000ffffffff',
      '9500000000000000',
    ].join(' '),
  );
  assert.throws(() => assembleBpf([ifEqual(0, 0, 'nowhere')]), /there is no label nowhere/);
});

for (const family of [4, 6] as const)
  for (const isConnected of [true, false])
    test(`a query over IPv${family} from a socket that is ${isConnected ? '' : 'not '}connected is recorded with its process`, async (t) => {
      const programs = attached(t, [PORT]);
      if (programs === null) return;
      const socket = createSocket(family === 4 ? 'udp4' : 'udp6');
      socket.on('error', () => undefined);
      t.after(() => socket.close());
      const address = family === 4 ? '127.0.0.1' : '::1';
      const query = Buffer.from('12345678', 'hex');
      if (isConnected) {
        socket.connect(PORT, address);
        await once(socket, 'connect');
        await new Promise((done) => socket.send(query, done));
      } else await new Promise((done) => socket.send(query, PORT, address, done));
      const [record, ...more] = own(programs);
      assert.deepEqual(more, []);
      assert.deepEqual(
        [record!.protocol, record!.id, record!.targetPort, record!.sourcePort],
        ['udp', 0x1234, PORT, socket.address().port],
      );
      assert.equal(record!.target.length, family === 4 ? 4 : 16);
      assert.equal(record!.target.at(-1), 1);
      if (programs.senders) assert.equal(record!.senderPid, process.pid);
      assert.ok(record!.cookieLow > 0 && record!.cgroup > 0n);
      assert.ok(record!.command.length > 0);
      const nowMs = bootClock()();
      assert.ok(record!.notedBootMs <= record!.sentBootMs && record!.sentBootMs <= nowMs);
      assert.ok(nowMs - record!.notedBootMs < 60_000, `${nowMs - record!.notedBootMs}`);
    });

test('other ports are not recorded; a TCP connection is recorded once, when it is opened', async (t) => {
  const programs = attached(t, [PORT]);
  if (programs === null) return;
  const server = createServer((socket) => socket.end('some bytes')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const other = createSocket('udp4');
  t.after(() => {
    other.close();
    server.close();
  });
  await new Promise((done) => other.send('not DNS', PORT - 1, '127.0.0.1', done));
  const client = connect(port, '127.0.0.1');
  client.resume();
  await once(client, 'close');
  const records = own(programs);
  assert.deepEqual(
    records.map(({ protocol, targetPort, id }) => [protocol, targetPort, id]),
    [['tcp', port, 0]],
  );
});

test('a program that lives for milliseconds is recorded', (t) => {
  const programs = attached(t, [PORT]);
  if (programs === null) return;
  const script = `echo $$; echo x > /dev/udp/127.0.0.1/${PORT}`;
  const { stdout, error } = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
  if (error !== undefined) return t.skip('needs bash');
  const pids: number[] = [];
  programs.drain(({ pid, targetPort }) => void (targetPort === PORT && pids.push(pid)));
  assert.deepEqual(pids, [Number(stdout)]);
});

test('records that the ring cannot hold are dropped, and later ones arrive', async (t) => {
  const programs = attached(t, [PORT]);
  if (programs === null) return;
  const socket = createSocket('udp4');
  socket.on('error', () => undefined);
  t.after(() => socket.close());
  const send = (): Promise<unknown> =>
    new Promise((done) => socket.send('1234', PORT, '127.0.0.1', done));
  // Each takes 112 bytes, and the ring has 4 MiB.
  for (let i = 0; i < 40_000; i++) socket.send('1234', PORT, '127.0.0.1');
  await send();
  const seen = own(programs).length;
  assert.ok(seen > 30_000 && seen < 40_000, `${seen}`);
  await send();
  assert.equal(own(programs).length, 1);
});

test("a program rejected by the kernel is reported with the verifier's message", (t) => {
  if (attached(t, [PORT]) === null) return;
  // The program ends without setting a result.
  assert.throws(
    () => loadProgram(PROGRAM.CGROUP_SKB, ATTACH.EGRESS, assembleBpf([exit])),
    (error) => error instanceof BpfRefused && /R0 !read_ok/.test(error.verdict),
  );
});
