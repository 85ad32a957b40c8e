import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { printed, start, type Child } from '../../../test/kit/child.ts';
import { queryBytes, UdpClient } from '../../../test/kit/loopback.ts';
import { freePorts } from '../../../test/kit/serve-process.ts';
import { batchedUdp } from '../../linux/packet-loop.ts';

const program = join(import.meta.dirname, '../../../bin/ndots');

/** Makes a worker fail, outside any query, in the way that the file named by DIE says, once it is there. */
const assassin = `
  import { isMainThread } from 'node:worker_threads';
  import { readFileSync, unlinkSync } from 'node:fs';
  const ways = {
    throw() { throw new Error('killed by a test'); },
    'fill its heap'() { for (const kept = [];;) kept.push({ at: kept.length, more: [1, 2, 3] }); },
  };
  if (!isMainThread) setInterval(() => {
    let way;
    try {
      way = readFileSync(process.env.DIE, 'utf8');
      unlinkSync(process.env.DIE);
    } catch { return; }
    ways[way]?.();
  }, 10).unref();
`;

type Way = 'throw' | 'fill its heap';

interface Victim {
  readonly child: Child;
  readonly port: number;
  die(way?: Way): void;
}

async function victim(t: TestContext, workers: number): Promise<Victim> {
  const folder = mkdtempSync(join(tmpdir(), 'ndots-death-'));
  const [port] = (await freePorts(1)) as [number];
  const corefile = join(folder, 'Corefile');
  const die = join(folder, 'die');
  const preload = join(folder, 'assassin.mjs');
  writeFileSync(corefile, `.:${port} {\n  bind 127.0.0.1\n  whoami\n}\n`);
  writeFileSync(preload, assassin);
  const child = start('ndots', [program, 'serve', '-conf', corefile, '-workers', String(workers)], {
    env: { ...process.env, DIE: die, NODE_OPTIONS: `--import ${preload}` },
  });
  t.after(async () => {
    await child.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  await printed(child, /ndots-\d/, 20_000);
  return {
    child,
    port,
    die: (way = 'throw') => {
      // In one step: a worker must not read half of it.
      writeFileSync(`${die}.new`, way);
      renameSync(`${die}.new`, die);
    },
  };
}

/** How many UDP sockets are bound to the port. */
function bound(port: number): number {
  const wanted = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/udp', 'utf8')
    .split('\n')
    .filter((line) => line.includes(wanted)).length;
}

async function answers(clients: readonly UdpClient[], port: number, id: number): Promise<boolean> {
  const client = clients[id % clients.length]!;
  client.send(queryBytes('any.example.', id), port);
  const reply = await client.next(10_000);
  return reply !== null && reply.bytes.readUInt16BE(0) === id;
}

const { available } = batchedUdp();

describe('a worker that dies', { skip: available ? false : 'needs batched UDP' }, () => {
  for (const workers of [1, 2]) {
    test(`of ${workers} loses no query, and leaves no socket that nobody reads`, async (t) => {
      const { child, port, die } = await victim(t, workers);
      const clients = await Promise.all(Array.from({ length: 8 }, () => UdpClient.open()));
      t.after(() => clients.forEach((client) => client.close()));
      assert.equal(bound(port), workers);
      for (let death = 1; death <= 2; death++) {
        die();
        let id = 1000 * death;
        const served = (): number => child.output().split('serves again').length - 1;
        // Each client has one query under way: whichever socket it falls to, it is answered.
        while (served() < death) {
          const wave = clients.map(() => answers(clients, port, id++));
          assert.deepEqual([...new Set(await Promise.all(wave))], [true]);
        }
        assert.equal(bound(port), workers);
      }
      assert.match(
        child.output(),
        /\[ERROR\] worker \d ends because of a bug: Error: killed by a test/,
      );
      assert.match(child.output(), /\[ERROR\] worker \d ended unexpectedly and is started again/);
    });
  }

  test('amid a reload makes neither fail: who takes its place serves the new Corefile', async (t) => {
    const { child, port, die } = await victim(t, 2);
    const client = await UdpClient.open();
    t.after(() => client.close());
    for (let turn = 1; turn <= 4; turn++) {
      die();
      // At a different moment of dying and coming back each time.
      await new Promise((resolve) => setTimeout(resolve, 25 * turn));
      child.signal('SIGUSR1');
      await printed(child, new RegExp(`(Reloading complete[^]*){${turn}}`), 20_000);
      await printed(child, new RegExp(`(serves again[^]*){${turn}}`), 20_000);
      assert.ok(await answers([client], port, turn));
    }
    assert.doesNotMatch(child.output(), /Restart failed|could not be started/);
    assert.equal(bound(port), 2);
  });

  test('of lack of memory dies alone, while queries come', async (t) => {
    const { child, port, die } = await victim(t, 1);
    const clients = await Promise.all(Array.from({ length: 8 }, () => UdpClient.open()));
    t.after(() => clients.forEach((client) => client.close()));
    const flood = setInterval(() => {
      for (const client of clients) client.send(queryBytes('any.example.', 1), port);
    }, 1);
    t.after(() => clearInterval(flood));
    for (let death = 1; death <= 2; death++) {
      die('fill its heap');
      await printed(child, new RegExp(`(serves again[^]*){${death}}`), 60_000);
    }
    clearInterval(flood);
    const client = await UdpClient.open();
    t.after(() => client.close());
    assert.ok(await answers([client], port, 4711));
    assert.match(child.output(), /worker 0 ended unexpectedly .*heap out of memory/);
  });

  test('does not keep the process from ending in order', async (t) => {
    const { child, die } = await victim(t, 1);
    die();
    await printed(child, /ended unexpectedly/);
    child.signal('SIGTERM');
    assert.equal(await child.exitCode, 0);
  });
});
