/**
 * Latency of queries, counted from the moment each was due: undisturbed, while the zone is given to another server again and again, and
 * while another zone of the same size is fetched from BIND again and again. Rounds take turns, so that only the ratio counts.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answered } from '../test/kit/child.ts';
import { startNamed } from '../test/kit/zone-servers.ts';
import { figure } from './kit/figures.ts';
import { compile, ndots, need, pace, rounds, smoke, workFolder, type Pace } from './kit/peers.ts';

need('gcc', 'taskset', 'named', 'kdig');
const folder = workFolder();
const program = compile('pace.c', folder);
const names = smoke ? 10_000 : 200_000;
const rate = smoke ? 2000 : 10_000;
const seconds = smoke ? 2 : 6;

function writeZone(file: string, serial: number): void {
  const lines = [
    '$TTL 300',
    `@ SOA ns hostmaster ${serial} 3600 1 1209600 60`,
    '@ NS ns',
    'ns A 192.0.2.1',
  ];
  for (let i = 0; i < names; i++)
    lines.push(`host-${i} A 10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`);
  writeFileSync(`${file}.new`, `${lines.join('\n')}\n`);
  renameSync(`${file}.new`, file);
}

const out = join(folder, 'out.zone');
const into = join(folder, 'into.zone');
writeZone(out, 1);
writeZone(into, 1);
const questions = join(folder, 'names.txt');
writeFileSync(
  questions,
  Array.from(
    { length: 20_000 },
    () => `host-${Math.floor(Math.random() * names)}.out.test 1\n`,
  ).join(''),
);
const bind = await startNamed(
  join(folder, 'named'),
  5830,
  `zone "into.test" { type primary; file "${into}"; notify explicit; also-notify { 127.0.0.1 port 5820; }; notify-delay 0; };`,
);
const server = ndots(
  `.:5820 {\n bind 127.0.0.1\n file ${out} out.test\n secondary into.test {\n transfer from 127.0.0.1:5830\n }\n transfer {\n to *\n }\n prometheus 127.0.0.1:5821\n}`,
  folder,
);
await answered(5820, 'ns.out.test', 120_000);
await answered(5820, 'ns.into.test', 120_000);
await pace(program, 5820, rate, 2, questions, 1);

/** Gives the zone to kdig, one time after the other. @returns ends it, and says how often it was given */
function giving(): () => number {
  let given = 0;
  let stopped = false;
  let child: ChildProcess;
  const again = (): void => {
    child = spawn('sh', ['-c', 'exec kdig @127.0.0.1 -p 5820 out.test AXFR > /dev/null']);
    child.once('exit', () => {
      if (stopped) return;
      given++;
      again();
    });
  };
  again();
  return () => {
    stopped = true;
    child.kill();
    return given;
  };
}

let serial = 1;
/** Has BIND read another version, which it tells of. */
function fetching(): () => void {
  const change = (): void => {
    writeZone(into, ++serial);
    bind.child.signal('SIGHUP');
  };
  change();
  const timer = setInterval(change, smoke ? 1000 : 3000);
  return () => clearInterval(timer);
}

const found: Record<'undisturbed' | 'out' | 'in', Pace[]> = { undisturbed: [], out: [], in: [] };
let given = 0;
for (let round = 0; round < Math.max(2, rounds); round++) {
  found.undisturbed.push(await pace(program, 5820, rate, seconds, questions, 1));
  const endOut = giving();
  found.out.push(await pace(program, 5820, rate, seconds, questions, 1));
  given += endOut();
  const endIn = fetching();
  found.in.push(await pace(program, 5820, rate, seconds, questions, 1));
  endIn();
}
const metrics = await (await fetch('http://127.0.0.1:5821/metrics')).text();
const fetched = Number(
  /^ndots_zone_reloads_total\{zone="into\.test\."\} (\d+)/m.exec(metrics)?.[1] ?? 0,
);
console.log(`${names} names: given ${given} times, fetched ${fetched} times, at ${rate} queries/s`);
for (const [name, all] of Object.entries(found))
  for (const { sent, received, errors, p50, p99, p999, max } of all)
    console.log(
      `${name.padEnd(12)} p50 ${p50} µs  p99 ${p99} µs  p99.9 ${p999} µs  max ${max} µs  lost ${sent - received}  errors ${errors}`,
    );
const middle = (all: readonly Pace[]): number =>
  all.map(({ p999 }) => p999).toSorted((a, b) => a - b)[all.length >> 1]!;
for (const [name, way] of [
  ['out', found.out],
  ['in', found.in],
] as const)
  // A short run has four queries beyond its p99.9: a pause of anybody on the machine is all of it.
  figure(
    `p99.9, AXFR ${name} : undisturbed`,
    middle(way) / middle(found.undisturbed),
    '',
    smoke ? null : { atMost: 2 },
  );
await Promise.all([server.stop(), bind.child.stop()]);
process.exit(0);
