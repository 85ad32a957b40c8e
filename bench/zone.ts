/**
 * Zone files. With 100 000 names, measures the CPU per query, compared with NSD and Knot with one thread. With a
 * million names, measures the memory relative to the text's size. The time of a complete transfer to another server is
 * compared with BIND's.
 */
import { spawnSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { answered, type Child } from '../test/kit/child.ts';
import { startKnot, startNamed, startNsd } from '../test/kit/zone-servers.ts';
import { beside, figure, figureOf, type Goal, smoke } from './kit/figures.ts';
import { load, loadInTurn, spread } from './kit/dnsperf.ts';
import {
  ndots,
  need,
  printLoads,
  rounds,
  runSeconds,
  versionOf,
  workDirectory,
} from './kit/peers.ts';

need('dnsperf', 'nsd', 'knotd', 'named', 'kdig', 'taskset');
const directory = workDirectory();
const names = smoke ? 10_000 : 100_000;

function writeZone(file: string, count: number): number {
  const lines = [
    '$TTL 300',
    '@ SOA ns hostmaster 1 7200 3600 1209600 60',
    '@ NS ns',
    '@ NS ns2',
    'ns A 192.0.2.1',
    'ns2 A 192.0.2.2',
  ];
  for (let i = 0; i < count; i++) {
    const address = `${10 + (i >> 24)}.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
    lines.push(`host-${i}${i % 3 === 0 ? `.rack-${i % 500}` : ''} A ${address}`);
  }
  writeFileSync(file, `${lines.join('\n')}\n`);
  return statSync(file).size;
}

const zone = join(directory, 'bench.zone');
writeZone(zone, names);
const many = smoke ? 20_000 : 1_000_000;
const large = join(directory, 'large.zone');
const text = writeZone(large, many);
const questions = join(directory, 'names.txt');
writeFileSync(
  questions,
  Array.from({ length: 50_000 }, () => {
    const i = Math.floor(Math.random() * names);
    const name = `host-${i}${i % 3 === 0 ? `.rack-${i % 500}` : ''}.bench.test`;
    return Math.random() < 0.2 ? `no-${name} A\n` : `${name} A\n`;
  }).join(''),
);

/** The milliseconds for which the runtime retains an ended thread's memory. */
const settledMs = 14_000;

/** The memory that a server with a zone uses once it has settled after some queries, in MiB. */
async function settledMiB(file: string): Promise<number> {
  const child = ndots(
    `bench.test:5500 {\n bind 127.0.0.1\n file ${file}\n transfer {\n to *\n }\n}`,
    directory,
    { cpu: 0 },
  );
  await answered(5500, 'ns.bench.test', 120_000);
  load(child, { port: 5500, file: questions, seconds: runSeconds });
  await pause(settledMs);
  const resident = child.residentMiB();
  await child.stop();
  return resident;
}

// The same server with a small zone, after the same queries. The difference is due to the large zone. The runtime's
// compiled code varies by more than a MiB between runs.
const small = join(directory, 'small.zone');
writeZone(small, 10);
const resident: { small: number[]; large: number[] } = { small: [], large: [] };
for (let round = 0; round < rounds; round++) {
  resident.small.push(await settledMiB(small));
  resident.large.push(await settledMiB(large));
}
const inTheMiddle = (list: readonly number[]): number =>
  list.toSorted((a, b) => a - b)[list.length >> 1]!;
const zoneMiB = inTheMiddle(resident.large) - inTheMiddle(resident.small);

const servers: Record<string, { port: number; child: Child }> = {};
servers['ndots'] = {
  port: 5500,
  child: ndots(
    `bench.test:5500 {\n bind 127.0.0.1\n file ${zone}\n transfer {\n to *\n }\n}`,
    directory,
    {
      cpu: 0,
    },
  ),
};
servers['nsd'] = await startNsd(join(directory, 'nsd'), 5510, { 'bench.test': zone });
servers['knot'] = await startKnot(join(directory, 'knot'), 5520, { 'bench.test': zone });
for (const name of ['nsd', 'knot'])
  spawnSync('taskset', ['-a', '-p', '-c', '0', String(servers[name]!.child.pid)]);
for (const { port } of Object.values(servers)) await answered(port, 'ns.bench.test');
await pause(3000);
// NSD answers in a separate process.
servers['nsd'].child = withChildren(servers['nsd'].child);

beside('nsd', versionOf('nsd', '-v'));
beside('knot', versionOf('knotd', '-V'));
const { middle, ratio } = loadInTurn(servers, {
  rounds: smoke ? 1 : 9,
  seconds: smoke ? 1 : 2,
  outstanding: 100,
  names: () => questions,
});
printLoads(middle);
figureOf('CPU per query, ndots : knot', ratio('ndots', 'knot'), goal({ atMost: 1.1 }));
figureOf('CPU per query, ndots : nsd', ratio('ndots', 'nsd'));
const shown = (list: readonly number[]): string => list.map((each) => each.toFixed(1)).join(' ');
console.log(`zone of ${many} names, ${(text / 1e6).toFixed(1)} MB of text`);
console.log(`MiB with it ${shown(resident.large)}, with a small one ${shown(resident.small)}`);
figure('memory : the text of the zone', (zoneMiB * 1.048576e6) / text, '', goal({ atMost: 2 }));
for (const { child } of Object.values(servers)) await child.stop();

const bind = await startNamed(
  join(directory, 'named'),
  5530,
  `zone "bench.test" { type primary; file "${large}"; };`,
);
const ours = ndots(
  `bench.test:5500 {\n bind 127.0.0.1\n file ${large}\n transfer {\n to *\n }\n}`,
  directory,
);
await answered(5500, 'ns.bench.test', 120_000);
await answered(5530, 'ns.bench.test', 120_000);
const times: Record<string, number[]> = { ndots: [], bind: [] };
for (let round = 0; round < rounds; round++) {
  for (const [name, port] of [
    ['ndots', 5500],
    ['bind', 5530],
  ] as const) {
    const begin = performance.now();
    const { stdout } = spawnSync(
      'sh',
      ['-c', `kdig @127.0.0.1 -p ${port} bench.test AXFR | tail -4`],
      { encoding: 'utf8' },
    );
    times[name]!.push(performance.now() - begin);
    if (round === 0)
      console.log(`${name.padEnd(8)} ${/\(.*records\)/.exec(stdout)?.[0] ?? stdout}`);
  }
}
const seconds = (name: string): number => spread(times[name]!).median / 1000;
console.log(
  `AXFR of ${many} records to kdig: ndots ${seconds('ndots').toFixed(2)} s, bind ${seconds('bind').toFixed(2)} s`,
);
figureOf(
  'records/s by AXFR, ndots : bind',
  spread(times['bind']!.map((bindMs, round) => bindMs / times['ndots']![round]!)),
  goal({ atLeast: 1 }),
);
await Promise.all([ours.stop(), bind.child.stop()]);
process.exit(0);

/** A short run's speed is meaningless, so it has no goal. */
function goal(wanted: Goal): Goal | null {
  return smoke ? null : wanted;
}

/** The CPU seconds of a server and of the processes that it started. */
function withChildren(child: Child): Child {
  const family = (pid: number): number[] => {
    const { stdout } = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' });
    return [pid, ...stdout.split('\n').filter(Boolean).map(Number).flatMap(family)];
  };
  const pids = family(child.pid);
  return {
    ...child,
    cpuSeconds: () =>
      pids.reduce((sum, pid) => {
        const { stdout } = spawnSync('cat', [`/proc/${pid}/stat`], { encoding: 'utf8' });
        const fields = stdout.slice(stdout.lastIndexOf(')') + 2).split(' ');
        return sum + (Number(fields[11]) + Number(fields[12])) / 100;
      }, 0),
  };
}
