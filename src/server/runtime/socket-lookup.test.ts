import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { SocketLookup } from './socket-lookup.ts';
import { TranslationLookup } from './translation-lookup.ts';

const skip = process.platform === 'linux' ? false : 'needs Linux';

/** Returns the cgroup of this process and the cgroup v2 mount point, or null if there is none. */
function ownCgroup(): string | null {
  const path = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
  const [, mount] =
    /^\S+ \S+ \S+ \/ (\S+) .* - cgroup2 /m.exec(readFileSync('/proc/self/mountinfo', 'utf8')) ?? [];
  return path === undefined || mount === undefined ? null : join(mount, path);
}

for (const family of [4, 6] as const)
  test(
    `an IPv${family} UDP socket is found by its two endpoints until it is closed`,
    { skip },
    async (t) => {
      const lookup = new SocketLookup();
      t.after(() => lookup.close());
      const address = family === 4 ? '127.0.0.1' : '::1';
      const socket = createSocket(family === 4 ? 'udp4' : 'udp6');
      socket.bind(0, address);
      await once(socket, 'listening');
      const local = { address, port: socket.address().port };
      const remote = { address, port: 53 };
      const found = lookup.find('udp', local, remote)!;
      assert.ok(found.inode > 0 && found.cookie > 0n);
      assert.equal(found.uid, process.getuid!());
      assert.deepEqual(lookup.find('udp', local, remote), found);
      const cgroup = ownCgroup();
      if (cgroup !== null) assert.equal(found.cgroup, statSync(cgroup, { bigint: true }).ino);
      await new Promise<void>((done) => socket.close(done));
      assert.equal(lookup.find('udp', local, remote), null);
    },
  );

test('a connected UDP socket is not found for another remote endpoint', { skip }, async (t) => {
  const lookup = new SocketLookup();
  const socket = createSocket('udp4');
  t.after(() => {
    lookup.close();
    socket.close();
  });
  socket.connect(53, '127.0.0.1');
  await once(socket, 'connect');
  const local = { address: '127.0.0.1', port: socket.address().port };
  assert.notEqual(lookup.find('udp', local, { address: '127.0.0.1', port: 53 }), null);
  assert.equal(lookup.find('udp', local, { address: '127.0.0.1', port: 54 }), null);
});

test('both ends of a TCP connection are found, and the listening socket', { skip }, async (t) => {
  const lookup = new SocketLookup();
  const server = createServer((socket) => socket.on('error', () => undefined)).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = connect(port, '127.0.0.1');
  await once(server, 'connection');
  t.after(() => {
    lookup.close();
    client.destroy();
    server.close();
  });
  const near = { address: '127.0.0.1', port: client.localPort! };
  const far = { address: '127.0.0.1', port };
  const [asking, accepted] = [lookup.find('tcp', near, far)!, lookup.find('tcp', far, near)!];
  assert.notEqual(asking.inode, accepted.inode);
  assert.ok(!asking.listens && !accepted.listens);
  const listening = lookup.find('tcp', far, { address: '0.0.0.0', port: 0 })!;
  assert.ok(listening.listens);
  assert.equal(lookup.find('tcp', { address: '127.0.0.1', port: 1 }, far), null);
});

test('addresses of different families and invalid addresses have no socket', { skip }, (t) => {
  const lookup = new SocketLookup();
  t.after(() => lookup.close());
  const port = 53;
  assert.equal(lookup.find('udp', { address: '127.0.0.1', port }, { address: '::1', port }), null);
  assert.equal(lookup.find('udp', { address: 'db.lan', port }, { address: '::1', port }), null);
});

test('an untracked connection has no translation', { skip }, (t) => {
  const lookup = new TranslationLookup();
  t.after(() => lookup.close());
  const client = { address: '192.0.2.1', port: 9 };
  try {
    assert.equal(lookup.find('tcp', client, { address: '192.0.2.2', port: 9 }), null);
  } catch (error) {
    const { code } = error as { code?: string };
    if (code !== 'EPERM' && code !== 'EINVAL') throw error;
    t.skip(`connection tracking cannot be asked: ${code}`);
  }
});
