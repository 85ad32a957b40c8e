/**
 * Replies over TCP, measured by dnsperf with long-lived connections and 1 000 service names. Compared with BIND, which
 * has the same names in a zone.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answered, start } from '../test/kit/child.ts';
import { load, median, type Load } from './kit/dnsperf.ts';
import { beside, figure } from './kit/figures.ts';
import {
  kubeadmCorefile,
  ndots,
  need,
  rounds,
  runSeconds,
  services,
  versionOf,
  workDirectory,
} from './kit/peers.ts';

need('dnsperf', 'named', 'taskset');
const directory = workDirectory();
const { manifests, names } = services(directory, 1000);
const file = join(directory, 'names.txt');
writeFileSync(file, [...names.keys()].map((name) => `${name} A\n`).join(''));
const zone = join(directory, 'cluster.local.zone');
writeFileSync(
  zone,
  [
    '$TTL 30',
    'cluster.local. SOA ns.dns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 30',
    'cluster.local. NS ns.dns.cluster.local.',
    'ns.dns.cluster.local. A 127.0.0.1',
    ...[...names].map(([name, address]) => `${name} A ${address}`),
    '',
  ].join('\n'),
);
const conf = join(directory, 'named.conf');
writeFileSync(
  conf,
  `options { directory "${directory}"; listen-on port 5510 { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; pid-file none; session-keyfile none; };\ncontrols { };\nzone "cluster.local" { type primary; file "${zone}"; };\n`,
);
const ours = ndots(kubeadmCorefile(5500, manifests), directory, { cpu: 0 });
const bind = start('bind', ['/usr/sbin/named', '-g', '-n', '1', '-c', conf], { cpu: 0 });
const first = [...names.keys()][0]!;
await answered(5500, first);
await answered(5510, first);
const runs: Record<'ndots' | 'bind', Load[]> = { ndots: [], bind: [] };
for (let round = 0; round < rounds; round++) {
  runs.ndots.push(load(ours, { port: 5500, file, seconds: runSeconds, mode: 'tcp', clients: 20 }));
  runs.bind.push(load(bind, { port: 5510, file, seconds: runSeconds, mode: 'tcp', clients: 20 }));
}
beside('bind', versionOf('named', '-v'));
const a = median(runs.ndots, ({ perSecond }) => perSecond);
const b = median(runs.bind, ({ perSecond }) => perSecond);
console.log(
  `ndots    ${a.perSecond.toFixed(0).padStart(8)} replies/s  ${a.cpuMicros.toFixed(2)} µs CPU each  lost ${a.lost}  ${a.rcodes}`,
);
console.log(
  `bind     ${b.perSecond.toFixed(0).padStart(8)} replies/s  ${b.cpuMicros.toFixed(2)} µs CPU each  lost ${b.lost}  ${b.rcodes}`,
);
figure('replies/s, ndots : bind', a.perSecond / b.perSecond, '', { atLeast: 1 });
figure('CPU per query, ndots : bind', a.cpuMicros / b.cpuMicros);
await Promise.all([ours.stop(), bind.stop()]);
process.exit(0);
