import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { KernelSocket } from './network-spaces.ts';
import { SocketHolders, type SearchLimits, type SocketHoldersParts } from './socket-holders.ts';

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

/** CLOCK_BOOTTIME in milliseconds, rounded down to a multiple of 10. */
function sinceBootMs(): number {
  return Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * 1000;
}

function holdersOf(tree: SocketHoldersParts['tree'], limits?: SearchLimits): SocketHolders {
  const parts = { tree, pods: null, sinceBootMs };
  return new SocketHolders(limits === undefined ? parts : { ...parts, limits });
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
    const holders = holdersOf(null);
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

  test('is not searched for in more files than may be read in a second', async (t) => {
    const { server, socket } = await listening(3n);
    t.after(() => server.close());
    const limits = { filesPerSecond: 2000, filesOfGroup: 2000 };
    const holders = holdersOf(null, limits);
    const nowMs = performance.now();
    const { why, processes } = holders.find(socket, network, nowMs, nowMs);
    assert.deepEqual([why, processes], ['busy', []]);
  });

  test('is found while the processes of another control group have too many files', async (t) => {
    const { server, socket } = await listening(4n);
    t.after(() => server.close());
    const tree = {
      pathOf: (id: bigint) => `/${id}`,
      processesIn: (path: string) => (path === '/9' ? Array(9).fill(process.pid) : [process.pid]),
    };
    const limits = { filesPerSecond: 20_000, filesOfGroup: 10_000 };
    const holders = holdersOf(tree, limits);
    const find = (cgroup: bigint, cookie: bigint, inode: number): string | null => {
      const nowMs = performance.now();
      return holders.find({ ...socket, cgroup, cookie, inode }, network, nowMs, nowMs).why;
    };
    assert.equal(find(9n, 5n, -1), 'busy');
    assert.equal(find(9n, 6n, -1), 'busy');
    assert.equal(find(8n, 7n, socket.inode), null);
  });

  test('is found outside the control group of a server that a service manager has started', async (t) => {
    const { server, socket } = await listening(8n);
    t.after(() => server.close());
    // As with socket activation, the creator keeps the socket open.
    const { fd } = (server as unknown as { readonly _handle: { readonly fd: number } })._handle;
    const service = spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
    t.after(() => service.kill());
    const tree = { pathOf: () => '/init.scope', processesIn: () => [process.pid] };
    const holders = holdersOf(tree);
    const find = (): readonly number[] => {
      const nowMs = performance.now();
      const found = holders.find({ ...socket, cgroup: 1n }, network, nowMs, nowMs, true);
      return found.processes.map(({ pid }) => pid).toSorted((one, other) => one - other);
    };
    const both = [process.pid, service.pid!].toSorted((one, other) => one - other);
    assert.deepEqual(find(), both);
    await new Promise((done) => setTimeout(done, 1100));
    assert.deepEqual(find(), both, 'after the group has been searched again');
    service.kill();
    await once(service, 'exit');
    assert.deepEqual(find(), [process.pid]);
  });

  test('is not remembered after it has closed the socket', async () => {
    const { server, socket } = await listening(2n);
    const holders = holdersOf(null);
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

test('a process that has taken over the ID of one that used a socket is not described instead of it', () => {
  const holders = holdersOf(null);
  const sender = { pids: [process.pid], cgroup: 1n, command: 'earlier', asker: null };
  const nowMs = sinceBootMs();
  const own = holders.describe({ ...sender, usedBootMs: [nowMs] });
  assert.notEqual(own.processes[0]!.commandLine, '');
  const earlier = holders.describe({ ...sender, usedBootMs: [nowMs - 3_600_000] });
  assert.deepEqual(earlier.processes, [
    { pid: process.pid, command: 'earlier', commandLine: '', parent: null },
  ]);
});
