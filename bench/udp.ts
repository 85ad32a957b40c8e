/**
 * The UDP transport alone. Compares the batched listener with the node:dgram listener and a C echo server that batches
 * its system calls. All three answer every query with the same address. dnsperf sends queries over loopback to each
 * server in turn, for several rounds.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { batchedUdp } from '../src/server/runtime/packet-loop.ts';
import { answered, start } from '../test/kit/child.ts';
import { load, median, type Load } from './kit/dnsperf.ts';
import { compile, need, ratio, rounds, runSeconds, versionOf, workDirectory } from './kit/peers.ts';

need('dnsperf', 'gcc', 'taskset');
const found = batchedUdp();
if (!found.available) {
  console.log(`skipped: ${found.reason}`);
  process.exit(0);
}
const directory = workDirectory();
const file = join(directory, 'names.txt');
const names = Array.from({ length: 5000 }, (_, i) => `svc-${i}.bench.svc.cluster.local.`);
writeFileSync(file, names.map((name) => `${name} A\n`).join(''));

const synthetic = fileURLToPath(new URL('peers/synthetic.ts', import.meta.url));
const serverCpu = 0;
const run = (mode: string, port: number): readonly string[] => [
  process.execPath,
  '--disable-warning=ExperimentalWarning',
  synthetic,
  String(port),
  mode,
];
const servers = [
  { name: 'batched', port: 5401, words: run('batched', 5401) },
  { name: 'plain', port: 5402, words: run('plain', 5402) },
  { name: 'C echo', port: 5403, words: [compile('echo.c', directory), '5403'] },
].map(({ name, port, words }) => ({ name, port, child: start(name, words, { cpu: serverCpu }) }));
for (const { port } of servers) await answered(port, names[0]!);

/** The number of queries in flight: one (to measure latency), a few, and enough to saturate the server. */
for (const outstanding of [1, 10, 100, 1000]) {
  const runs = new Map<string, Load[]>();
  for (let round = 0; round < rounds; round++) {
    for (const { name, port, child } of servers) {
      const seconds = outstanding === 1 ? 1 : Math.max(1, runSeconds / 2);
      const clients = Math.min(4, outstanding);
      const seen = load(child, { port, file, seconds, outstanding, clients });
      runs.set(name, [...(runs.get(name) ?? []), seen]);
    }
  }
  const middle = new Map(
    [...runs].map(([name, list]) => [name, median(list, ({ cpuMicros }) => cpuMicros)]),
  );
  console.log(`${outstanding} in flight`);
  for (const [name, { perSecond, cpuMicros, latencyMs, lost }] of middle) {
    const columns = [
      `${perSecond.toFixed(0).padStart(8)} replies/s`,
      `${cpuMicros.toFixed(2).padStart(6)} µs CPU each`,
      `${(latencyMs * 1000).toFixed(0).padStart(5)} µs latency`,
      `lost ${lost}`,
    ];
    console.log(`  ${name.padEnd(8)} ${columns.join('  ')}`);
  }
  const [batched, plain, echo] = ['batched', 'plain', 'C echo'].map((name) => middle.get(name)!);
  console.log(`  CPU per query, batched : C echo  ${ratio(batched!.cpuMicros, echo!.cpuMicros)}`);
  if (outstanding >= 100) {
    // The load generator has only one CPU too and is often the bottleneck. A server's capacity on a CPU of its own
    // follows from its time per query.
    const [ours, least] = [
      plain!.cpuMicros / batched!.cpuMicros,
      plain!.cpuMicros / echo!.cpuMicros,
    ];
    console.log(
      `  replies per CPU second, batched : plain  ${ours.toFixed(2)}   (C echo : plain ${least.toFixed(2)})`,
    );
    console.log(
      `  replies/s, batched : plain               ${ratio(batched!.perSecond, plain!.perSecond)}`,
    );
  }
}
console.log(`peers: node ${process.version}, ${versionOf('dnsperf', '-h')}`);
await Promise.all(servers.map(({ child }) => child.stop()));
process.exit(0);
