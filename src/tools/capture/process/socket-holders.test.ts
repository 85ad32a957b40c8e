import assert from 'node:assert/strict';
import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { KernelSocket } from './network-spaces.ts';
import { SocketHolders } from './socket-holders.ts';

const network = readlinkSync('/proc/self/ns/net');

/** The socket inodes of this process. */
function ownSockets(): ReadonlySet<number> {
  const found = new Set<number>();
  for (const descriptor of readdirSync('/proc/self/fd'))
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1];
      if (inode !== undefined) found.add(Number(inode));
    } catch {
      // The descriptor that read the directory.
    }
  return found;
}

/** A listening socket of this process. */
async function listening(cookie: bigint): Promise<{ server: Server; socket: KernelSocket }> {
  const known = ownSockets();
  const server = createServer();
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const inode = [...ownSockets()].find((each) => !known.has(each))!;
  return { server, socket: { inode, cookie, uid: 0, cgroup: null, listens: true } };
}

describe('the process that holds a socket', () => {
  const files: number[] = [];
  before(() => {
    for (let i = 0; i < 3000; i++) files.push(openSync('/dev/null', 'r'));
  });
  after(() => files.forEach(closeSync));

  test('is found for every reply of a server that has thousands of open files', async (t) => {
    const { server, socket } = await listening(1n);
    t.after(() => server.close());
    const holders = new SocketHolders(null, null);
    const found = Array.from({ length: 200 }, () => {
      const nowMs = performance.now();
      return holders.find(socket, network, nowMs, nowMs);
    });
    assert.deepEqual([...new Set(found.map(({ why }) => why))], [null]);
    for (const { processes } of found)
      assert.deepEqual(
        processes.map(({ pid }) => pid),
        [process.pid],
      );
  });

  test('is not remembered after it has closed the socket', async () => {
    const { server, socket } = await listening(2n);
    const holders = new SocketHolders(null, null);
    const find = (): string | null => {
      const nowMs = performance.now();
      return holders.find(socket, network, nowMs, nowMs).why;
    };
    assert.equal(find(), null);
    assert.equal(find(), null);
    await new Promise((closed) => server.close(closed));
    assert.equal(find(), 'ended');
  });
});
