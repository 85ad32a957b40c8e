/**
 * Reading captures of a million packets: `node bench/capture.ts`. ndots pairs queries with replies, groups them into
 * lookups, and searches for findings. In the same run, alternating with ndots, tcpdump and tshark print a line for each
 * packet. doctor takes longer if a capture has losses, forwarding loops or duplicate packets, or if all its clients,
 * servers and names are different. A capture that is three times as long shows whether memory grows with length. The
 * time for `capture` includes its list of clients and their resolvers.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasProgram } from '../test/kit/real-resolver.ts';
import { beside, figure, smoke } from './kit/figures.ts';
import { writeNodeCapture } from '../test/kit/node-captures.ts';
import { rounds } from './kit/peers.ts';

const PACKETS = smoke ? 5_000 : 1_000_000;
const counted = (times: number): string => `${(times * PACKETS).toLocaleString('en-US')} packets`;
const bin = new URL('../bin/ndots', import.meta.url).pathname;
const directory = mkdtempSync(join(tmpdir(), 'ndots-bench-'));
const captures = {
  healthy: { trouble: 'none', sightings: 1 },
  'three sightings': { trouble: 'none', sightings: 3 },
  losses: { trouble: 'losses', sightings: 1 },
  loop: { trouble: 'loop', sightings: 3 },
  'all strangers': { trouble: 'crowd', sightings: 1 },
} as const;
/** Output costs time, too. */
const outputs = ['none', 'text', 'flow', 'json', 'pcapng'] as const;

/** Repeats the capture three times in one file. */
function writeLonger(from: string, to: string): void {
  const bytes = readFileSync(from);
  const fd = openSync(to, 'w');
  writeSync(fd, bytes, 0, 24);
  for (let turn = 0; turn < rounds; turn++) {
    writeSync(fd, bytes, 24);
    for (let at = 24; at < bytes.length; at += 16 + bytes.readUInt32LE(at + 8))
      bytes.writeUInt32LE(bytes.readUInt32LE(at) + 600, at);
  }
  closeSync(fd);
}

interface Spent {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly mebibytes: number;
}

function run(program: string, ...words: string[]): Spent {
  const before = performance.now();
  const timed = spawnSync('/usr/bin/time', ['-f', '%U %S %M', program, ...words], {
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  });
  const seconds = (performance.now() - before) / 1000;
  const [user = 0, system = 0, kibibytes = 0] = timed.stderr
    .trimEnd()
    .split('\n')
    .at(-1)!
    .split(' ')
    .map(Number);
  return { seconds, cpuSeconds: user + system, mebibytes: kibibytes / 1024 };
}

const median = (list: readonly number[]): number =>
  list.toSorted((a, b) => a - b)[list.length >> 1]!;

interface Goals {
  readonly seconds: number | null;
  readonly mebibytes: number | null;
}

/** Reports the times of a command's runs. */
function told(name: string, runs: readonly Spent[], { seconds, mebibytes }: Goals): void {
  const goal = (atMost: number | null): { readonly atMost: number } | null =>
    atMost === null ? null : { atMost };
  figure(`${name}: ${counted(1)}`, median(runs.map((run) => run.seconds)), 's', goal(seconds));
  figure(`${name}: CPU time`, cpuOf(runs), 's');
  const most = Math.max(...runs.map((run) => run.mebibytes));
  figure(`${name}: memory`, most, 'MiB', goal(mebibytes));
}

const cpuOf = (runs: readonly Spent[]): number => median(runs.map(({ cpuSeconds }) => cpuSeconds));
const wanted: Goals = { seconds: 10, mebibytes: 200 };

try {
  const paths = new Map<string, string>();
  for (const [name, capture] of Object.entries(captures)) {
    const path = join(directory, `${name.replaceAll(' ', '-')}.pcap`);
    writeNodeCapture(path, { packets: PACKETS, ...capture });
    paths.set(name, path);
  }
  const healthy = paths.get('healthy')!;
  const peers = (['tcpdump', 'tshark'] as const).filter(hasProgram);
  for (const peer of peers)
    beside(
      peer,
      (spawnSync(peer, ['--version'], { encoding: 'utf8' }).stdout || '').split('\n')[0]!,
    );
  const spent = {
    capture: [] as Spent[],
    doctor: [] as Spent[],
    tcpdump: [] as Spent[],
    tshark: [] as Spent[],
  };
  for (let turn = 0; turn < rounds; turn++) {
    spent.capture.push(run(bin, 'capture', healthy, '-o', 'none'));
    spent.doctor.push(run(bin, 'doctor', healthy, '-q'));
    if (peers.includes('tcpdump')) spent.tcpdump.push(run('tcpdump', '-nr', healthy));
  }
  if (peers.includes('tshark'))
    spent.tshark.push(
      run('tshark', '-r', healthy, '-T', 'fields', '-e', 'dns.id', '-e', 'dns.time'),
    );
  for (const verb of ['capture', 'doctor'] as const) {
    told(verb, spent[verb], wanted);
    for (const peer of peers)
      figure(`${verb}: CPU time, of ${peer}’s`, cpuOf(spent[verb]) / cpuOf(spent[peer]));
  }
  for (const [name, path] of paths)
    if (path !== healthy) told(`doctor, ${name}`, [run(bin, 'doctor', path, '-q')], wanted);
  for (const output of outputs.slice(1))
    told(`capture -o ${output}`, [run(bin, 'capture', healthy, '-o', output)], {
      ...wanted,
      // A line of JSON includes both messages, record by record.
      seconds: output === 'json' ? null : wanted.seconds,
    });
  const three = join(directory, 'three.pcap');
  writeLonger(healthy, three);
  for (const verb of ['capture', 'doctor'] as const) {
    const longer = run(bin, verb, three, ...(verb === 'capture' ? ['-o', 'none'] : ['-q']));
    figure(
      `${verb}: memory of ${counted(3)}, of that of ${counted(1)}`,
      longer.mebibytes / median(spent[verb].map(({ mebibytes }) => mebibytes)),
      '',
      { atMost: 1.15 },
    );
  }
} finally {
  rmSync(directory, { recursive: true });
}
