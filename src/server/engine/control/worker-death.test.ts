import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { testCertificate, testKey } from '../../../../test/kit/certificate.ts';
import { answered, printed, start, type Child } from '../../../../test/kit/child.ts';
import { queryBytes, UdpClient } from '../../../../test/kit/loopback.ts';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { batchedUdp } from '../../runtime/packet-loop.ts';
import { EXIT_TIMED_OUT } from '../../runtime/termination.ts';
import { WORKER_THREAD } from './spare-thread.ts';

const program = join(import.meta.dirname, '../../../../bin/ndots');

/**
 * Makes a thread fail outside any query. The file named in DIE specifies how, and failure begins once that file exists.
 */
const assassin = `
  import { isMainThread } from 'node:worker_threads';
  import { openSync, readFileSync, unlinkSync } from 'node:fs';
  const ways = {
    'a worker throws': () => { throw new Error('killed by a test'); },
    'a worker fills its heap': () => {
      const text = '[' + '[1],'.repeat(20000) + '0]';
      for (const kept = [];;) kept.push(JSON.parse(text));
    },
    'a worker loops': () => { for (;;); },
    'a worker waits in the kernel': () => openSync(process.env.FIFO),
    'the main thread loops': () => { for (;;); },
  };
  const mine = isMainThread ? /^the main/ : /^a worker/;
  setInterval(() => {
    let way;
    try {
      way = readFileSync(process.env.DIE, 'utf8');
      if (!mine.test(way)) return;
      unlinkSync(process.env.DIE);
    } catch { return; }
    ways[way]();
  }, 10).unref();
`;

type Way =
  | 'a worker throws'
  | 'a worker fills its heap'
  | 'a worker loops'
  | 'a worker waits in the kernel'
  | 'the main thread loops';

interface Victim {
  readonly child: Child;
  readonly port: number;
  fail(way: Way): void;
  /** Returns the status of `/health`. */
  health(): Promise<number>;
  metrics(): Promise<string>;
}

async function victim(
  t: TestContext,
  workers: number,
  lameduck = '',
  more: (directory: string) => string = () => '',
): Promise<Victim> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-death-'));
  const [port, health, metrics] = await freePorts(3);
  const corefile = join(directory, 'Corefile');
  const die = join(directory, 'die');
  const fifo = join(directory, 'fifo');
  const preload = join(directory, 'assassin.mjs');
  const directives = [
    'bind 127.0.0.1',
    `health 127.0.0.1:${health} {\n${lameduck}\n}`,
    `prometheus 127.0.0.1:${metrics}`,
    'whoami',
  ];
  writeFileSync(corefile, `.:${port} {\n${directives.join('\n')}\n}\n${more(directory)}`);
  writeFileSync(preload, assassin);
  spawnSync('mkfifo', [fifo]);
  const child = start('ndots', [program, 'serve', '-conf', corefile, '-workers', String(workers)], {
    env: { ...process.env, DIE: die, FIFO: fifo, NODE_OPTIONS: `--import ${preload}` },
  });
  t.after(async () => {
    await child.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  await printed(child, /ndots-\d/);
  return {
    child,
    port,
    fail: (way) => {
      // Do this in one step, so that a half-written file is never read.
      writeFileSync(`${die}.new`, way);
      renameSync(`${die}.new`, die);
    },
    health: async () => (await fetch(`http://127.0.0.1:${health}/health`)).status,
    metrics: async () => (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text(),
  };
}

/** Counts the UDP sockets bound to the port. */
function bound(port: number): number {
  const wanted = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/udp', 'utf8')
    .split('\n')
    .filter((line) => line.includes(wanted)).length;
}

/** Returns the CPUs of a process or thread, in the system's format: `0-3`. */
function processorsOf(place: string): string {
  const status = readFileSync(`/proc/${place}/status`, 'latin1');
  return /^Cpus_allowed_list:\s*(.*)$/m.exec(status)![1]!;
}

async function answers(clients: readonly UdpClient[], port: number, id: number): Promise<boolean> {
  const client = clients[id % clients.length]!;
  client.send(queryBytes('any.example.', id), port);
  const reply = await client.next(60_000);
  return reply !== null && reply.bytes.readUInt16BE(0) === id;
}

const { available } = batchedUdp();

describe('a worker that dies', { skip: available ? false : 'needs batched UDP' }, () => {
  for (const workers of [1, 2]) {
    test(`among ${workers} loses no query, and leaves no socket without a reader`, async (t) => {
      const { child, port, fail } = await victim(t, workers);
      const clients = await Promise.all(Array.from({ length: 8 }, () => UdpClient.open()));
      t.after(() => clients.forEach((client) => client.close()));
      assert.equal(bound(port), workers);
      for (let death = 1; death <= 2; death++) {
        fail('a worker throws');
        let id = 1000 * death;
        const served = (): number => child.output().split('serves again').length - 1;
        // Each client has one query in progress, which is answered whichever socket it reaches.
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
      assert.match(child.output(), /\[ERROR\] worker \d ended unexpectedly and is being restarted/);
    });
  }

  test('is replaced by one that may run on all CPUs, while all other threads leave it one CPU if there are few', async (t) => {
    const { child, port, fail } = await victim(t, 1);
    const client = await UdpClient.open();
    t.after(() => client.close());
    const all = processorsOf('self');
    // With one CPU, none stays free, and with more than eight, some are free anyway.
    const isFew = availableParallelism() > 1 && availableParallelism() <= 8;
    for (let turn = 1; turn <= 2; turn++) {
      assert.ok(await answers([client], port, turn));
      const threads = readdirSync(`/proc/${child.pid}/task`).map((thread) => ({
        isWorker:
          readFileSync(`/proc/${child.pid}/task/${thread}/comm`, 'latin1').trim() === WORKER_THREAD,
        processors: processorsOf(`${child.pid}/task/${thread}`),
      }));
      assert.deepEqual(
        threads.filter(({ isWorker }) => isWorker).map(({ processors }) => processors),
        [all],
      );
      for (const { isWorker, processors } of threads)
        if (!isWorker) assert.equal(processors === all, !isFew, processors);
      if (turn === 2) break;
      fail('a worker throws');
      await printed(child, /serves again/);
    }
  });

  test('during a reload makes neither fail: its replacement serves the new Corefile', async (t) => {
    const { child, port, fail } = await victim(t, 2);
    const client = await UdpClient.open();
    t.after(() => client.close());
    for (let turn = 1; turn <= 4; turn++) {
      fail('a worker throws');
      // It dies and comes back at a different moment each time.
      await new Promise((resolve) => setTimeout(resolve, 25 * turn));
      child.signal('SIGUSR1');
      await printed(child, new RegExp(`(Reloading complete[^]*){${turn}}`));
      await printed(child, new RegExp(`(serves again[^]*){${turn}}`));
      assert.ok(await answers([client], port, turn));
    }
    assert.doesNotMatch(child.output(), /Restart failed|could not be restarted/);
    assert.equal(bound(port), 2);
  });

  test("is replaced by one that has the Corefile's files as they were checked, whatever they contain now", async (t) => {
    const [tls, other] = await freePorts(2);
    const files: Readonly<Record<string, string>> = {
      'cert.pem': testCertificate,
      'key.pem': testKey,
      keys: 'key "k.test." { algorithm hmac-sha256; secret "NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk="; };',
      'resolv.conf': 'nameserver 127.0.0.1\nsearch a.example\n',
    };
    let directory = '';
    const { child, port, fail } = await victim(t, 1, '', (place) => {
      directory = place;
      for (const [name, text] of Object.entries(files)) writeFileSync(join(place, name), text);
      return `tls://.:${tls} {\nbind 127.0.0.1\ntls cert.pem key.pem\nwhoami\n}
.:${other} {\nbind 127.0.0.1\nautopath resolv.conf\ntsig {\nsecrets keys\n}
forward a.example tls://127.0.0.1:${tls} {\ntls cert.pem key.pem cert.pem\n}
grpc . resolv.conf {\ntls cert.pem key.pem cert.pem\n}\n}\n`;
    });
    for (const name of Object.keys(files)) writeFileSync(join(directory, name), 'broken');
    fail('a worker throws');
    await printed(child, /serves again|could not be restarted/);
    assert.doesNotMatch(child.output(), /could not be restarted/);
    const client = await UdpClient.open();
    t.after(() => client.close());
    assert.ok(await answers([client], port, 1));
    const socket = connectTls({ host: '127.0.0.1', port: tls!, rejectUnauthorized: false });
    t.after(() => socket.destroy());
    await once(socket, 'secureConnect');
    // The server ends first.
    socket.on('error', () => undefined);
    assert.equal(socket.getPeerCertificate().subject.CN, 'dns.example');
  });

  test('from lack of memory dies alone, while queries arrive', async (t) => {
    const { child, port, fail } = await victim(t, 1);
    const clients = await Promise.all(Array.from({ length: 8 }, () => UdpClient.open()));
    t.after(() => clients.forEach((client) => client.close()));
    const flood = setInterval(() => {
      for (const client of clients) client.send(queryBytes('any.example.', 1), port);
    }, 1);
    t.after(() => clearInterval(flood));
    for (let death = 1; death <= 2; death++) {
      fail('a worker fills its heap');
      await printed(child, new RegExp(`(serves again[^]*){${death}}`), 60_000);
    }
    clearInterval(flood);
    // Queued queries come first.
    await answered(port, 'any.example.', 60_000, () => true);
    assert.match(child.output(), /worker 0 (ended unexpectedly .*heap out of memory|hangs)/);
  });

  test('does not prevent an orderly shutdown', async (t) => {
    const { child, fail } = await victim(t, 1);
    fail('a worker throws');
    await printed(child, /ended unexpectedly/);
    child.signal('SIGTERM');
    assert.equal(await child.exitCode, 0);
  });
});

describe('a worker that hangs', { skip: available ? false : 'needs batched UDP' }, () => {
  for (const way of ['a worker loops', 'a worker waits in the kernel'] as const) {
    test(`is replaced, and its queries are answered (${way})`, async (t) => {
      const { child, port, fail, health, metrics } = await victim(t, 1);
      const client = await UdpClient.open();
      t.after(() => client.close());
      assert.equal(await health(), 200);
      fail(way);
      await new Promise((resolve) => setTimeout(resolve, 100));
      // They wait in the hanging worker's socket, which its replacement inherits. If the replacement is late because
      // the machine is busy, it drops the queries that have become stale and answers a retry.
      const ask = (): void => client.send(queryBytes('early.example.', 7), port);
      const retries = setInterval(ask, 500);
      t.after(() => clearInterval(retries));
      ask();
      await printed(child, /\[ERROR\] worker 0 hangs/);
      const reply = await client.next(60_000);
      clearInterval(retries);
      assert.equal(reply?.bytes.readUInt16BE(0), 7);
      await printed(child, /worker 0 serves again/);
      assert.equal(await health(), 200);
      const text = await metrics();
      assert.match(text, /^ndots_worker_restarts_total\{reason="hung"\} 1$/m);
      assert.match(text, /^ndots_workers\{state="answering"\} 1$/m);
      const stuck = way === 'a worker loops' ? 0 : 1;
      assert.match(text, new RegExp(`^ndots_workers\\{state="stuck"\\} ${stuck}$`, 'm'));
      child.signal('SIGTERM');
      // A process that cannot be shut down in order is killed, and this is reported.
      assert.equal(await child.exitCode, stuck);
    });

    test(`does not keep the process from ending (${way})`, async (t) => {
      const { child, fail } = await victim(t, 2, 'lameduck 1s');
      fail(way);
      await new Promise((resolve) => setTimeout(resolve, 200));
      child.signal('SIGTERM');
      await child.exitCode;
    });
  }
});

describe('a main thread that hangs', { skip: available ? false : 'needs batched UDP' }, () => {
  test('leaves queries answered, and SIGTERM kills the process', async (t) => {
    const { child, port, fail } = await victim(t, 1, 'lameduck 1s');
    fail('the main thread loops');
    await new Promise((resolve) => setTimeout(resolve, 200));
    const client = await UdpClient.open();
    t.after(() => client.close());
    assert.ok(await answers([client], port, 1));
    child.signal('SIGTERM');
    assert.equal(await child.exitCode, EXIT_TIMED_OUT);
  });
});
