/**
 * The node cache. Measures the CPU for a cached query, including network upkeep, compared with `serve` using the same
 * Corefile in the same namespace. Also measures its memory with a full cache, including helpers, and how long pods wait
 * when it is killed or stopped.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { printed, type Child } from '../test/kit/child.ts';
import {
  makeNodeWorld,
  noNodeWorld,
  outage,
  SERVICE,
  WHO,
  type NodeWorld,
} from '../test/kit/node-world.ts';
import { figure, smoke } from './kit/figures.ts';
import { need, rounds, runSeconds } from './kit/peers.ts';

const reason = noNodeWorld();
if (reason !== null) {
  console.log(`skipped: ${reason}`);
  process.exit(0);
}
need('dnsperf');

/** A cache for 10 000 entries can always store this many, although its shards fill unevenly. */
const NAMES = smoke ? 500 : 9000;
const RATE = smoke ? 500 : 10_000;
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1]!;

/** The user and system seconds of a process and its finished children. */
function cpuSeconds({ pid }: Child): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
}

/** The memory of a process and its children, in MiB. */
function residentMiB(world: NodeWorld, { pid }: Child): number {
  const own = `${pid}\n${world.node('ps', '-o', 'pid=', '--ppid', String(pid))}`;
  return own
    .trim()
    .split(/\s+/)
    .map((each) =>
      Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${each}/status`, 'utf8'))?.[1]),
    )
    .reduce((sum, each) => sum + each / 1024, 0);
}

const world = await makeNodeWorld();
try {
  const cache = await world.cache(['-workers', '1']);
  const corefile = join(world.directory, 'serve');
  writeFileSync(
    corefile,
    'cluster.local:5300 {\n errors\n cache {\n success 9984 30\n denial 9984 5\n }\n reload\n bind 10.1.0.1\n forward . 10.96.0.11 {\n force_tcp\n }\n prometheus :9254\n}\n',
  );
  const program = join(import.meta.dirname, '../bin/ndots');
  const serve = world.start('serve', 'node', [
    program,
    'serve',
    '-conf',
    corefile,
    '-workers',
    '1',
  ]);
  await printed(serve, /^ndots-/m);
  const names = join(world.directory, 'names');
  writeFileSync(names, Array.from({ length: NAMES }, (_, i) => `n${i}.cluster.local A\n`).join(''));
  const servers = [
    { child: cache, words: ['-s', SERVICE], costs: [] as number[] },
    { child: serve, words: ['-s', '10.1.0.1', '-p', '5300'], costs: [] as number[] },
  ];
  const load = async (words: readonly string[], seconds: number): Promise<number> => {
    const run = world.start('dnsperf', 'pod', [
      ...['dnsperf', '-d', names, '-Q', String(RATE), '-q', '200', '-c', '4', '-T', '1'],
      ...['-l', String(seconds), ...words],
    ]);
    await run.exitCode;
    return Number(/Queries completed:\s+(\d+)/.exec(run.output())?.[1]);
  };
  for (const { words } of servers) await load(words, 2);
  for (let round = 0; round < rounds; round++)
    for (const { child, words, costs } of servers) {
      // Entries are valid for 30 s, and a run must not take longer.
      const before = cpuSeconds(child);
      const completed = await load(words, runSeconds);
      costs.push(((cpuSeconds(child) - before) * 1e6) / completed);
    }
  const [own, peer] = servers.map(({ costs }) => median(costs)) as [number, number];
  figure('CPU of a cached query', own, 'µs');
  figure('CPU of a cached query, serve', peer, 'µs');
  figure('CPU of a cached query, node-cache : serve', own / peer, '', { atMost: 1.1 });
  // Each thread releases unused memory the next time that it checks its heap.
  await wait(smoke ? 0 : 25_000);
  figure('memory with a full cache, helpers included', residentMiB(world, cache), 'MiB', {
    atMost: 90,
  });
  const windows = { SIGSTOP: [] as number[], SIGKILL: [] as number[] };
  let present = cache;
  for (let round = 0; round < rounds; round++)
    for (const signal of ['SIGSTOP', 'SIGKILL'] as const) {
      while (world.who(SERVICE) !== WHO.node) await wait(100);
      const stop = await world.ask(SERVICE, 2);
      await wait(500);
      const at = Date.now();
      present.signal(signal);
      await wait(1500);
      if (signal === 'SIGSTOP') present.signal('SIGCONT');
      else present = await world.cache(['-workers', '1']);
      windows[signal].push(outage(await stop(), at));
    }
  for (const signal of ['SIGSTOP', 'SIGKILL'] as const)
    figure(`longest time without an answer after ${signal}`, Math.max(...windows[signal]), 'ms', {
      atMost: 1000,
    });
} finally {
  await world.close();
}
process.exit(0);
