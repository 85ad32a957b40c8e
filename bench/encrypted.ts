/**
 * Replies over TLS and HTTPS: 1 000 names, all of them cache hits, compared with CoreDNS (same Corefile) and Unbound.
 * Each server has one thread on the same CPU. HTTPS is measured both with dnsperf, which sends GETs and accepts one
 * reply per TLS record, and with h2load, which sends POSTs.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answered, type Child } from '../test/kit/child.ts';
import { load, median, type Load } from './kit/dnsperf.ts';
import { beside, figure } from './kit/figures.ts';
import { loadHttps } from './kit/h2load.ts';
import {
  certificateIn,
  coredns,
  corednsProgram,
  has,
  ndots,
  need,
  printLoads,
  rounds,
  runSeconds,
  versionOf,
  wildcardUpstream,
  workDirectory,
} from './kit/peers.ts';

need('dnsperf', 'unbound', 'taskset');
const directory = workDirectory();
const certificate = certificateIn(directory);
const names = Array.from({ length: 1000 }, (_, i) => `svc-${i}.bench`);
const file = join(directory, 'names.txt');
writeFileSync(file, names.map((name) => `${name}. A\n`).join(''));
const hosts = join(directory, 'hosts');
writeFileSync(hosts, names.map((name, i) => `10.0.${i >> 8}.${i & 0xff} ${name}\n`).join(''));

interface Server {
  readonly child: Child;
  readonly dns: number;
  readonly tls: number;
  readonly https: number;
}

/** Consecutive ports, starting with `dns`. */
const portsFrom = (dns: number): Omit<Server, 'child'> => ({ dns, tls: dns + 1, https: dns + 2 });

const corefile = ({ dns, tls, https }: Omit<Server, 'child'>): string =>
  `.:${dns} tls://.:${tls} https://.:${https} {
    bind 127.0.0.1
    tls ${certificate}.crt ${certificate}.key
    errors
    prometheus 127.0.0.1:${dns + 3}
    hosts ${hosts}
}
`;

const program = corednsProgram();
const [ours, theirs, third] = [5900, 5910, 5920].map(portsFrom);
const servers: Record<string, Server> = {
  ndots: { ...ours!, child: ndots(corefile(ours!), directory, { cpu: 0 }) },
  ...(program !== null && {
    coredns: { ...theirs!, child: coredns(program, corefile(theirs!), directory, 0) },
  }),
  unbound: { ...third!, child: wildcardUpstream(directory, third!.dns, 0, third!) },
};
for (const { dns, child } of Object.values(servers)) {
  await answered(dns, names[0]!).catch((error: Error) => {
    throw new Error(`${child.name}: ${error.message}\n${child.output()}`);
  });
}

const seconds = runSeconds;
/** Loads a server, by transport and program, with 100 queries in flight. */
const loads: Record<string, (server: Server) => Load> = {
  'tls, 4 clients': ({ child, tls: port }) =>
    load(child, { port, file, seconds, clients: 4, mode: 'dot' }),
  'tls, 20 clients': ({ child, tls: port }) =>
    load(child, { port, file, seconds, clients: 20, mode: 'dot' }),
  'https, dnsperf': ({ child, https: port }) =>
    load(child, { port, file, seconds, clients: 20, mode: 'doh' }),
  ...(has('h2load') && {
    'https, h2load': ({ child, https: port }: Server) =>
      loadHttps(child, { port, directory, name: names[1]!, seconds, clients: 20, streams: 5 }),
  }),
};

// The warm-up, after which just-in-time compilation is finished.
for (const run of Object.values(loads)) for (const server of Object.values(servers)) run(server);
const runs: Record<string, Load[]> = {};
for (let round = 0; round < rounds; round++) {
  for (const [how, run] of Object.entries(loads)) {
    for (const [name, server] of Object.entries(servers)) {
      (runs[`${name}, ${how}`] ??= []).push(run(server));
    }
  }
}
const middle = Object.fromEntries(
  Object.entries(runs).map(([name, list]) => [name, median(list, ({ cpuMicros }) => cpuMicros)]),
);
beside('unbound', versionOf('unbound', '-V'));
if (program !== null) beside('coredns', versionOf(program, '-version'));
printLoads(middle);
for (const how of Object.keys(loads)) {
  const cpu = (name: string): number => middle[`${name}, ${how}`]?.cpuMicros ?? NaN;
  figure(`CPU per query over ${how}, ndots : unbound`, cpu('ndots') / cpu('unbound'));
  if (program !== null)
    figure(`CPU per query over ${how}, coredns : ndots`, cpu('coredns') / cpu('ndots'), '', {
      atLeast: 2,
    });
}
await Promise.all(Object.values(servers).map(({ child }) => child.stop()));
process.exit(0);
