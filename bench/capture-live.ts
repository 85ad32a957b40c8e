/**
 * Live capture of 20 000 packets per second on one CPU: `node bench/capture-live.ts`, as root. dnsperf queries an
 * Unbound server over a veth pair. ndots and tcpdump take turns capturing at one end on the same CPU, while the load
 * and the server use another CPU. Counts the packets that were sent, seen, and dropped by the kernel. Then measures the
 * cost of `--process` at twice the query rate, as CPU time compared with the same capture without it.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOO_FAST } from '../src/faces/cli/capture/capture-live.ts';
import type { NowView } from '../src/tools/watch/view.ts';
import { printed, start, type Child } from '../test/kit/child.ts';
import { beside, figure, smoke } from './kit/figures.ts';
import { need, rounds, runSeconds, versionOf, workDirectory } from './kit/peers.ts';

need('dnsperf', 'unbound', 'tcpdump', 'ip', 'nsenter', 'taskset');

/** Queries per second. Including replies, there are twice as many packets. */
const RATE = smoke ? 500 : 10_000;
const PROCESS_RATE = 2 * RATE;
const NAMES = 3000;
const CPU = { watched: 0, load: 1 } as const;
const bin = new URL('../bin/ndots', import.meta.url).pathname;
const directory = workDirectory();
const [near, far] = ['near', 'far'].map((end) => `ndots-${end}-${process.pid}`) as [string, string];
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const median = (list: readonly number[]): number =>
  list.toSorted((a, b) => a - b)[list.length >> 1]!;

interface Seen {
  /** Packets sent by the load generator and the server. */
  readonly sent: number;
  readonly seen: number;
  /** Packets that the kernel dropped because the reader was too slow. */
  readonly dropped: number;
  /** CPU usage, 0 to 1 CPU. */
  readonly busy: number;
  /** MiB. */
  readonly memory: number;
}

/** A capture program, and how it reports its counts when it exits. */
interface Watcher {
  readonly name: string;
  readonly words: readonly string[];
  readonly seen: RegExp;
  readonly dropped: RegExp;
  /** A program on the other CPU that reads the capture program's output. */
  readonly reader?: readonly string[];
  /** The file with its views if this is the live model. */
  readonly views?: string;
}

const shell = (...words: readonly string[]): readonly string[] => [
  'sh',
  '-c',
  `exec ${words.join(' ')} > /dev/null`,
];
const ndots = (name: string, ...words: readonly string[]): Watcher => ({
  name,
  words: shell(bin, ...words, '-i', 'veth0'),
  seen: /(\d+) packets/,
  dropped: new RegExp(`(?:(\\d+) × )?${TOO_FAST}`),
});
const tcpdump = (name: string, ...words: readonly string[]): Watcher => ({
  name,
  words: shell('tcpdump', '-i', 'veth0', '-nn', ...words, 'port', '53'),
  seen: /(\d+) packets captured/,
  dropped: /(\d+) packets dropped by kernel/,
});
const agentPort = 9155;
const token = join(directory, 'token');
/** The node agent, along with a reader that receives the compressed stream. */
const agent: Watcher = {
  name: 'watch serve',
  words: [
    ...[bin, 'watch', 'serve', '-i', 'veth0', '--token-file', token],
    ...['--listen', `10.9.0.1:${agentPort}`],
  ],
  seen: /(\d+) packets for readers/,
  dropped: /(\d+) lost/,
  reader: shell(
    ...['curl', '-sN', '-H', "'accept-encoding: gzip'", '-H', `"ndots-console: $(cat ${token})"`],
    `http://10.9.0.1:${agentPort}/v1/exchanges`,
  ),
};
const views = join(directory, 'views');
/** The live model, where each line is a view. */
const top: Watcher = {
  name: 'top',
  words: ['sh', '-c', `exec ${bin} top -i veth0 -o json --view now > ${views}`],
  seen: /never/,
  dropped: /never/,
  views,
};
const watchers: readonly Watcher[] = [
  tcpdump('tcpdump -w', '-w', '/dev/null'),
  ndots('capture -o none', 'capture', '-o', 'none'),
  tcpdump('tcpdump'),
  ndots('capture', 'capture'),
  ndots('capture -o flow', 'capture', '-o', 'flow'),
  ndots('doctor', 'doctor', '-o', 'json'),
  agent,
  top,
];

const plain = ndots('-o none', 'capture', '-o', 'none');
const processWatchers: readonly Watcher[] = [
  plain,
  ndots('-o none --process', 'capture', '-o', 'none', '--process'),
  ndots('-o none --process --bpf', 'capture', '-o', 'none', '--process', '--bpf'),
];

/**
 * Creates two network namespaces connected by a veth pair.
 * @returns the reason why that failed, or null if it succeeded
 */
function network(): string | null {
  const lines = [
    `netns add ${near}`,
    `netns add ${far}`,
    `-n ${near} link add veth0 type veth peer name veth1 netns ${far}`,
    `-n ${near} address add 10.9.0.1/24 dev veth0`,
    `-n ${far} address add 10.9.0.2/24 dev veth1`,
    `-n ${near} link set veth0 up`,
    `-n ${far} link set veth1 up`,
  ];
  for (const line of lines) {
    const { status, stderr } = spawnSync('ip', line.split(' '), { encoding: 'utf8' });
    if (status !== 0) return `ip ${line}: ${stderr.trim()}`;
  }
  return null;
}

function within(where: string, name: string, words: readonly string[], cpu: number): Child {
  // `ip netns exec` would hide the cgroups.
  return start(name, ['nsenter', `--net=/run/netns/${where}`, ...words], { cpu });
}

function server(): Child {
  const file = join(directory, 'unbound.conf');
  writeFileSync(
    file,
    `server:
  interface: 10.9.0.2
  num-threads: 1
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "${directory}"
  pidfile: ""
  use-syslog: no
  verbosity: 0
  access-control: 10.9.0.0/24 allow
  local-zone: "bench." redirect
  local-data: "bench. 60 IN A 192.0.2.1"
remote-control:
  control-enable: no
`,
  );
  return within(far, 'unbound', ['unbound', '-d', '-c', file], CPU.load);
}

/** @returns the number of packets that crossed the veth pair */
async function load(file: string, seconds: number, rate: number = RATE): Promise<number> {
  const run = within(
    near,
    'dnsperf',
    [
      ...['dnsperf', '-s', '10.9.0.2', '-d', file, '-l', String(seconds), '-Q', String(rate)],
      ...['-q', '500', '-c', '20', '-T', '1'],
    ],
    CPU.load,
  );
  await run.exitCode;
  const number = (pattern: RegExp): number => Number(pattern.exec(run.output())?.[1] ?? Number.NaN);
  return number(/Queries sent:\s+(\d+)/) + number(/Queries completed:\s+(\d+)/);
}

/**
 * The CPU time of all threads, with nanosecond precision. tcpdump runs for less than one tick of the kernel's other
 * counters.
 */
function cpuSeconds({ pid }: Child): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const spent = threads.map((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'),
  );
  return spent.reduce((sum, line) => sum + Number(line.split(' ')[0]), 0) / 1e9;
}

async function watch(
  { name, words, seen, dropped, reader, views: printedTo }: Watcher,
  file: string,
  rate: number = RATE,
  forSeconds: number = runSeconds,
): Promise<Seen> {
  const child = within(near, name, words, CPU.watched);
  if (printedTo === undefined) await printed(child, /listening on|Ctrl-C|packets for readers on/);
  else while (!existsSync(printedTo) || statSync(printedTo).size === 0) await wait(50);
  const reading = reader === undefined ? null : within(far, 'curl', reader, CPU.load);
  await wait(smoke && reading === null ? 0 : 500);
  const before = cpuSeconds(child);
  const began = performance.now();
  const sent = await load(file, forSeconds, rate);
  // Time to read the rest of the kernel's buffer.
  await wait(500);
  const seconds = (performance.now() - began) / 1000;
  const busy = (cpuSeconds(child) - before) / seconds;
  const memory = child.residentMiB();
  child.signal('SIGINT');
  await child.exitCode;
  const said = child.output();
  /** 0 if the program does not report a number, and 1 if it leaves out that it is 1. */
  const number = (pattern: RegExp): number => {
    const [all, digits = '1'] = pattern.exec(said) ?? [];
    return all === undefined ? 0 : Number(digits);
  };
  await reading?.stop();
  if (printedTo !== undefined) {
    const last = readFileSync(printedTo, 'utf8').trim().split('\n').at(-1)!;
    const { inputs, lostByKernel } = JSON.parse(last) as NowView;
    const queries = inputs.reduce((sum, input) => sum + input.queries, 0);
    rmSync(printedTo);
    // Each query in the load either gets a reply or is lost by the server.
    return { sent, seen: 2 * queries, dropped: lostByKernel, busy, memory };
  }
  const all = name === 'doctor' ? sent : number(seen);
  return { sent, seen: all, dropped: number(dropped), busy, memory };
}

writeFileSync(token, 'a-token-that-is-long-enough');
try {
  const why = network();
  if (why !== null) console.log(`skipped: no network namespaces can be made here (${why})`);
  else {
    beside('tcpdump', versionOf('tcpdump', '--version'));
    const file = join(directory, 'names');
    writeFileSync(file, Array.from({ length: NAMES }, (_, i) => `n${i}.bench. A\n`).join(''));
    const unbound = server();
    await wait(1000);
    await load(file, 1);
    const runs = new Map<Watcher, Seen[]>(watchers.map((each) => [each, []]));
    for (let round = 0; round < rounds; round++)
      for (const [watcher, list] of runs) list.push(await watch(watcher, file));
    const minute = await watch(top, file, RATE, smoke ? 1 : 60);
    const processRuns = new Map<Watcher, Seen[]>(processWatchers.map((each) => [each, []]));
    for (let round = 0; round < rounds; round++)
      for (const [watcher, list] of processRuns)
        list.push(await watch(watcher, file, PROCESS_RATE));
    await unbound.stop();
    const of = (name: string): readonly Seen[] =>
      runs.get(watchers.find((each) => each.name === name)!)!;
    const busy = (name: string): number => median(of(name).map((each) => each.busy));
    const least = Math.min(...[...runs.values()].flat().map(({ sent }) => sent));
    figure('packets a second', least / runSeconds, '', { atLeast: smoke ? 0 : 0.95 * 2 * RATE });
    for (const { name } of watchers) {
      const isOwn = !name.startsWith('tcpdump');
      const lost = Math.max(
        ...of(name).map(({ sent, seen, dropped }) => Math.max(sent - seen, dropped)),
      );
      figure(`${name}: packets lost, the most of a run`, lost, '', isOwn ? { atMost: 0 } : null);
      figure(
        `${name}: of one CPU`,
        100 * busy(name),
        '%',
        isOwn ? { atMost: name === 'watch serve' || name === 'top' ? 50 : 80 } : null,
      );
    }
    figure(
      'watch serve: resident memory',
      Math.max(...of('watch serve').map(({ memory }) => memory)),
      'MiB',
      { atMost: 150 },
    );
    figure('top: resident memory after a minute', minute.memory, 'MiB', { atMost: 150 });
    figure('capture -o none : tcpdump -w, CPU time', busy('capture -o none') / busy('tcpdump -w'));
    figure('capture : tcpdump, text, CPU time', busy('capture') / busy('tcpdump'));
    const fewest = Math.min(...[...processRuns.values()].flat().map(({ sent }) => sent));
    figure('packets a second, where processes are looked up', fewest / runSeconds);
    const without = processRuns.get(plain)!;
    for (const watcher of processWatchers.slice(1)) {
      const own = processRuns.get(watcher)!;
      const price = median(own.map((each, round) => each.busy / without[round]!.busy));
      const goal = smoke ? null : { atMost: 1.3 };
      figure(`${watcher.name} : ${plain.name}, CPU time`, price, '', goal);
      const lost = Math.max(...own.map(({ dropped }) => dropped));
      figure(`${watcher.name}: packets lost, the most of a run`, lost);
    }
  }
} finally {
  for (const name of [near, far]) spawnSync('ip', ['netns', 'delete', name]);
}
process.exit(0);
