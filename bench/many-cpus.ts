/**
 * The same load on 1, 2, 4, … workers, up to the number of CPUs. Measures the replies per second, CPU per query, memory
 * per worker, and the busiest worker's share. The kernel distributes the load over SO_REUSEPORT sockets. Runs unchanged
 * on machines of any size. The control thread's CPU time until all workers answer is the cost of giving each of them a
 * copy of the cluster. With N workers, the server has N CPUs, and dnsperf has the remaining ones. If they have to share
 * CPUs, the figures say so. `WORKERS=1,2,8` sets the steps, and `SERVICES` the size of the cluster.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { answered, type Child } from '../test/kit/child.ts';
import { load, median, spread, type Load } from './kit/dnsperf.ts';
import { figure, figureOf, smoke } from './kit/figures.ts';
import {
  kubeadmCorefile,
  ndots,
  need,
  rounds,
  runSeconds,
  services,
  workDirectory,
} from './kit/peers.ts';

need('dnsperf', 'taskset');
const PORT = 5800;
const cpus = availableParallelism();
const directory = workDirectory();
const { manifests, names } = services(
  directory,
  Number(process.env['SERVICES'] ?? (smoke ? 500 : 10_000)),
);
const file = join(directory, 'names.txt');
writeFileSync(file, [...names.keys()].map((name) => `${name} A\n`).join(''));
/** The number of client sockets. The kernel chooses a worker by each socket's address and port. */
const CLIENTS = 256;
const TICKS_PER_SECOND = 100;

/** 1, 2, 4, … and the number of CPUs. */
function steps(): number[] {
  const named = process.env['WORKERS'];
  if (named !== undefined) return named.split(',').map(Number);
  const found: number[] = [];
  for (let count = 1; count < Math.max(2, cpus); count *= 2) found.push(count);
  return smoke ? [1, 2] : [...found, Math.max(2, cpus)];
}

/** The CPU seconds that each thread has used so far, by thread ID. */
function threadSeconds(child: Child): Map<string, number> {
  const tasks = `/proc/${child.pid}/task`;
  return new Map(
    readdirSync(tasks).map((thread) => {
      const fields = readFileSync(join(tasks, thread, 'stat'), 'utf8')
        .split(') ')[1]!
        .split(' ');
      return [thread, (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND] as const;
    }),
  );
}

/** The share of the work done by the busiest of `workers` threads. It is 1/workers if all are equally busy. */
function busiestShare(child: Child, workers: number, run: () => Load): [Load, number] {
  const before = threadSeconds(child);
  const seen = run();
  const used = [...threadSeconds(child)]
    .map(([thread, seconds]) => seconds - (before.get(thread) ?? 0))
    .toSorted((a, b) => b - a)
    .slice(0, workers);
  return [seen, used[0]! / used.reduce((sum, each) => sum + each, 0)];
}

let alone: { readonly perSecond: number; readonly cpuMicros: number; readonly mib: number } | null =
  null;
for (const workers of steps()) {
  // The control thread has its own CPU if possible.
  const ours = Math.min(cpus, workers);
  const shares = cpus < 2 * workers;
  const from = shares ? Math.max(0, cpus - Math.ceil(cpus / 2)) : ours;
  const threads = Math.max(1, cpus - from);
  const child = ndots(kubeadmCorefile(PORT, manifests).replace('loop\n', ''), directory, {
    words: ['-workers', String(workers)],
  });
  await answered(PORT, [...names.keys()][0]!, 60_000);
  const control = threadSeconds(child).get(String(child.pid)) ?? NaN;
  const runs: Load[] = [];
  const busiest: number[] = [];
  // The first round fills caches and compiles code.
  for (let round = 0; round <= rounds; round++) {
    const [seen, share] = busiestShare(child, workers, () =>
      load(child, {
        port: PORT,
        file,
        seconds: runSeconds,
        outstanding: 200 * workers,
        clients: CLIENTS,
        threads,
        cpu: `${from}-${cpus - 1}`,
      }),
    );
    if (round === 0) continue;
    runs.push(seen);
    busiest.push(share * workers);
  }
  const { perSecond, cpuMicros } = median(runs, (run) => run.perSecond);
  const mib = child.residentMiB();
  const label = `${workers} ${workers === 1 ? 'worker' : 'workers'}${shares ? ', CPUs shared with the load' : ''}`;
  figure(`${label}: replies`, perSecond, '/s');
  figure(`${label}: CPU per query`, cpuMicros, 'µs');
  figureOf(`${label}: busiest worker : average`, spread(busiest));
  figure(`${label}: memory`, mib, 'MiB');
  figure(`${label}: control thread until the first answer`, control * 1000, 'ms');
  if (alone === null) alone = { perSecond, cpuMicros, mib };
  else {
    figure(`${label}: replies, to one worker`, perSecond / alone.perSecond);
    figure(`${label}: CPU per query, to one worker`, cpuMicros / alone.cpuMicros);
    figure(`${label}: memory per further worker`, (mib - alone.mib) / (workers - 1), 'MiB');
  }
  await child.stop();
}
process.exit(0);
