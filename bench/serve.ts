/**
 * Replies from Kubernetes objects at saturation, with dnsperf, 5 000 service names (all hits), the kubeadm Corefile,
 * and one worker. Compared with Unbound, which has the same names as local data, and with a C echo server that batches
 * its system calls. A second mix has one third AAAA queries and one third NXDOMAIN from search paths.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answered, start } from '../test/kit/child.ts';
import { load, median, type Load } from './kit/dnsperf.ts';
import { beside, figure } from './kit/figures.ts';
import {
  compile,
  kubeadmCorefile,
  ndots,
  need,
  rounds,
  runSeconds,
  services,
  unbound,
  versionOf,
  workDirectory,
} from './kit/peers.ts';

need('dnsperf', 'unbound', 'gcc', 'taskset');
const directory = workDirectory();
const { manifests, names } = services(directory, 5000);
const all = [...names.keys()];
const hits = join(directory, 'hits.txt');
writeFileSync(hits, all.map((name) => `${name} A\n`).join(''));
const mix = join(directory, 'mix.txt');
writeFileSync(
  mix,
  all
    .map((name, i) =>
      i % 3 === 0
        ? `${name} A\n`
        : i % 3 === 1
          ? `${name} AAAA\n`
          : `${name.replace('.cluster.local.', '.cluster.local.bench.svc.cluster.local.')} A\n`,
    )
    .join(''),
);

const serverCpu = 0;
const server = ndots(kubeadmCorefile(5300, manifests), directory, { cpu: serverCpu });
const peer = unbound(directory, 5310, names, { cpu: serverCpu });
const echo = start('echo', [compile('echo.c', directory), '5320'], { cpu: serverCpu });
await answered(5300, all[0]!);
await answered(5310, all[0]!);
await answered(5320, all[0]!, 5000, () => true);

const runs: Record<string, Load[]> = { ndots: [], mix: [], unbound: [], echo: [] };
load(server, { port: 5300, file: hits, seconds: runSeconds });
for (let round = 0; round < rounds; round++) {
  runs['ndots']!.push(load(server, { port: 5300, file: hits, seconds: runSeconds }));
  runs['unbound']!.push(load(peer, { port: 5310, file: hits, seconds: runSeconds }));
  runs['echo']!.push(load(echo, { port: 5320, file: hits, seconds: runSeconds }));
  runs['mix']!.push(load(server, { port: 5300, file: mix, seconds: runSeconds }));
}
const middle = Object.fromEntries(
  Object.entries(runs).map(([name, list]) => [name, median(list, ({ cpuMicros }) => cpuMicros)]),
);
const { ndots: ours, unbound: theirs, echo: bare, mix: mixed } = middle as Record<string, Load>;
beside('unbound', versionOf('unbound', '-V'));
for (const [name, { perSecond, cpuMicros, lost, rcodes }] of Object.entries(middle)) {
  console.log(
    `${name.padEnd(8)} ${perSecond.toFixed(0).padStart(8)} replies/s  ${cpuMicros.toFixed(2).padStart(6)} µs CPU each  lost ${lost}  ${rcodes}`,
  );
}
figure('CPU per query, ndots : unbound', ours!.cpuMicros / theirs!.cpuMicros, '', { atMost: 1 });
figure('CPU per query, ndots : C echo', ours!.cpuMicros / bare!.cpuMicros, '', { atMost: 1.6 });
figure('replies/s, ndots : unbound', ours!.perSecond / theirs!.perSecond, '', { atLeast: 1 });
figure('CPU per query, mix : all hits', mixed!.cpuMicros / ours!.cpuMicros, '', { atMost: 1.15 });
await Promise.all([server.stop(), peer.stop(), echo.stop()]);
process.exit(0);
