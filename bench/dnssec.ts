/**
 * Replies signed online. Compares the CPU per query for unsigned replies, for cached signatures, and for a new
 * signature per reply with CoreDNS using the same keys.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answered, type Child } from '../test/kit/child.ts';
import { writeZoneKey, zoneKey } from '../test/kit/zone-keys.ts';
import { load, median, type Load } from './kit/dnsperf.ts';
import { beside, figure } from './kit/figures.ts';
import {
  coredns,
  corednsProgram,
  ndots,
  need,
  rounds,
  runSeconds,
  versionOf,
  workDirectory,
} from './kit/peers.ts';

need('dnsperf', 'taskset');
const directory = workDirectory();
const names = Array.from({ length: 1000 }, (_, i) => `host-${i}`);
const zone = join(directory, 'bench.zone');
writeFileSync(
  zone,
  ['$TTL 300', '@ SOA ns host 1 7200 3600 1209600 60', '@ NS ns', 'ns A 192.0.2.1']
    .concat(names.map((name, i) => `${name} A 10.0.${i >> 8}.${i & 255}`))
    .join('\n') + '\n',
);
const key = writeZoneKey(directory, zoneKey('bench.test.'));
const there = join(directory, 'there.txt');
writeFileSync(there, names.map((name) => `${name}.bench.test A\n`).join(''));
const never = join(directory, 'never.txt');
let nth = 0;
/** The names are new, so each of these replies is signed on demand. */
function newNames(): string {
  nth++;
  const lines = Array.from({ length: 200_000 }, (_, i) => `none-${nth}-${i}.bench.test A\n`);
  writeFileSync(never, lines.join(''));
  return never;
}

function corefile(port: number, lines: string): string {
  return `bench.test:${port} {\n bind 127.0.0.1\n file ${zone}\n${lines}\n}`;
}

const signing = `dnssec {\n key file ${key}\n }`;
const servers: Record<string, { readonly port: number; readonly child: Child }> = {
  plain: { port: 5500, child: ndots(corefile(5500, ''), directory, { cpu: 0 }) },
  signed: { port: 5510, child: ndots(corefile(5510, signing), directory, { cpu: 0 }) },
  'plain, cache': { port: 5520, child: ndots(corefile(5520, 'cache'), directory, { cpu: 0 }) },
  'signed, cache': {
    port: 5530,
    child: ndots(corefile(5530, `${signing}\n cache`), directory, { cpu: 0 }),
  },
};
const program = corednsProgram();
if (program !== null) {
  servers['coredns'] = {
    port: 5540,
    child: coredns(program, corefile(5540, signing), directory, 0),
  };
  beside('coredns', versionOf(program, '-version'));
}
for (const { port } of Object.values(servers)) await answered(port, 'host-1.bench.test');

function run(name: string, file: string, seconds = runSeconds): Load {
  const { port, child } = servers[name]!;
  return load(child, { port, file, seconds, dnssecOk: true });
}

/** The median run of each server, where servers alternate. */
function measure(chosen: readonly string[], file: () => string): Record<string, Load> {
  const runs: Record<string, Load[]> = Object.fromEntries(chosen.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const name of chosen) runs[name]!.push(run(name, file()));
  const middle = Object.fromEntries(
    chosen.map((name) => [name, median(runs[name]!, ({ cpuMicros }) => cpuMicros)]),
  );
  for (const [name, { perSecond, cpuMicros, lost, rcodes }] of Object.entries(middle))
    console.log(
      `${name.padEnd(14)} ${perSecond.toFixed(0).padStart(8)} replies/s  ${cpuMicros.toFixed(2)} µs CPU each  lost ${lost}  ${rcodes}`,
    );
  return middle;
}

const all = Object.keys(servers);
for (const name of all) run(name, there, 1);
console.log('answers whose signatures are there');
const known = measure(all, () => there);
const cpu = (of: Record<string, Load>, name: string): number => of[name]!.cpuMicros;
figure('CPU per query, signed : unsigned', cpu(known, 'signed') / cpu(known, 'plain'), '', {
  atMost: 1.25,
});
figure(
  'CPU per query behind cache, signed : unsigned',
  cpu(known, 'signed, cache') / cpu(known, 'plain, cache'),
  '',
  { atMost: 1.25 },
);
if (program !== null)
  figure(
    'CPU per signed query, ndots : CoreDNS',
    cpu(known, 'signed') / cpu(known, 'coredns'),
    '',
    {
      atMost: 1,
    },
  );
console.log('denials that are signed for each query');
const made = measure(
  all.filter((name) => !name.includes('plain') && !name.includes('cache')),
  newNames,
);
figure('CPU per denial that is signed', cpu(made, 'signed'), 'µs');
if (program !== null)
  figure('CPU per new signature, ndots : CoreDNS', cpu(made, 'signed') / cpu(made, 'coredns'), '', {
    atMost: 1,
  });
await Promise.all(Object.values(servers).map(({ child }) => child.stop()));
process.exit(0);
