/**
 * Query latency, measured from the time when each query is due. It is measured without disturbance and while the zone
 * is repeatedly transferred to another server. It is also measured while another zone of the same size is repeatedly
 * fetched from BIND. As a control, BIND transfers its zone to the same client, which then only shares the machine.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { answered } from '../test/kit/child.ts';
import { startNamed } from '../test/kit/zone-servers.ts';
import {
  elsewhere,
  moveElsewhere,
  takeRounds,
  tellRatio,
  type Disturbance,
} from './kit/disturbance.ts';
import { compile, ndots, need, workDirectory } from './kit/peers.ts';
import { smoke } from './kit/figures.ts';

need('gcc', 'taskset', 'chrt', 'named', 'kdig');
const directory = workDirectory();
const program = compile('pace.c', directory);
const names = smoke ? 10_000 : 200_000;
const rate = smoke ? 2000 : 10_000;
const seconds = smoke ? 2 : 4;
const rounds = smoke ? 1 : 4;

function writeZone(file: string): void {
  const lines = [
    '$TTL 300',
    '@ SOA ns hostmaster 1 3600 1 1209600 60',
    '@ NS ns',
    'ns A 192.0.2.1',
  ];
  for (let i = 0; i < names; i++)
    lines.push(`host-${i} A 10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`);
  writeFileSync(file, `${lines.join('\n')}\n`);
}

const out = join(directory, 'out.zone');
const into = join(directory, 'into.zone');
writeZone(out);
writeZone(into);
const questions = join(directory, 'names.txt');
writeFileSync(
  questions,
  Array.from(
    { length: 20_000 },
    () => `host-${Math.floor(Math.random() * names)}.out.test 1\n`,
  ).join(''),
);
const bind = await startNamed(
  join(directory, 'named'),
  5830,
  `zone "into.test" { type primary; file "${into}"; notify explicit; also-notify { 127.0.0.1 port 5820; }; notify-delay 0; };`,
);
moveElsewhere(bind.child.pid);
const server = ndots(
  `.:5820 {\n bind 127.0.0.1\n file ${out} out.test\n secondary into.test {\n transfer from 127.0.0.1:5830\n }\n transfer {\n to *\n }\n prometheus 127.0.0.1:5821\n}`,
  directory,
);
await answered(5820, 'ns.out.test', 120_000);
await answered(5820, 'ns.into.test', 120_000);
/** Waits until both servers have finished earlier work. */
const settled = (): Promise<void> => pause(smoke ? 500 : 4000);
await settled();

let given = 0;
const clients = new Set<number>();

/** Transfers a zone to kdig repeatedly. */
function giving(zone: string, port: number, count: () => void): Disturbance {
  return () => {
    let stopped = false;
    let child: ChildProcess;
    const again = (): void => {
      child = spawn('sh', [
        '-c',
        `exec ${elsewhere.join(' ')} kdig @127.0.0.1 -p ${port} ${zone} AXFR > /dev/null`,
      ]);
      const { pid = 0 } = child;
      clients.add(pid);
      child.once('exit', () => {
        clients.delete(pid);
        if (stopped) return;
        count();
        again();
      });
    };
    again();
    return () => {
      stopped = true;
      child.kill();
    };
  };
}

let serial = 1;
/**
 * Makes BIND load a different version and send a NOTIFY. Another program writes the file, because this one shares the
 * server's CPU.
 */
const fetching: Disturbance = () => {
  const change = (): void => {
    const newer = `s/hostmaster [0-9]*/hostmaster ${++serial}/`;
    const command = `sed '${newer}' ${into} > ${into}.new && mv ${into}.new ${into} && kill -HUP ${bind.child.pid}`;
    spawn(elsewhere[0]!, [...elsewhere.slice(1), 'sh', '-c', command], { stdio: 'inherit' });
  };
  change();
  const timer = setInterval(change, smoke ? 1000 : 3000);
  return async () => {
    clearInterval(timer);
    await settled();
  };
};

const taken = await takeRounds(
  rounds,
  { program, port: 5820, rate, seconds, file: questions },
  [giving('out.test', 5820, () => given++), fetching, giving('into.test', 5830, () => undefined)],
  () => [server.pid, bind.child.pid, ...clients],
);
const metrics = await (await fetch('http://127.0.0.1:5821/metrics')).text();
const fetched = Number(
  /^ndots_zone_reloads_total\{zone="into\.test\."\} (\d+)/m.exec(metrics)?.[1] ?? 0,
);
console.log(`${names} names: given ${given} times, fetched ${fetched} times, at ${rate} queries/s`);
// In a short run, only four queries are above p99.9, so a pause in any of the machine's processes determines it.
const goal = smoke ? null : ({ atMost: 2 } as const);
tellRatio('p99.9, AXFR out : undisturbed', taken, 0, goal);
tellRatio('p99.9, AXFR in : undisturbed', taken, 1, goal);
tellRatio('p99.9, AXFR from BIND to the same client : undisturbed', taken, 2, null);
await Promise.all([server.stop(), bind.child.stop()]);
process.exit(0);
