/** Generates load with dnsperf. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Child } from '../../test/kit/child.ts';

/** Results of a dnsperf run. */
export interface Load {
  readonly sent: number;
  readonly completed: number;
  readonly lost: number;
  readonly perSecond: number;
  /** The mean latency in milliseconds. */
  readonly latencyMs: number;
  /** The server's CPU time under load, in microseconds per completed query. */
  readonly cpuMicros: number;
  readonly rcodes: string;
}

/** `file` contains the questions, and `outstanding` is the number of queries in flight. */
export interface LoadOptions {
  readonly port: number;
  readonly file: string;
  readonly seconds: number;
  /** The maximum queries per second, or 0 for no limit. */
  readonly rate?: number;
  readonly outstanding?: number;
  readonly clients?: number;
  readonly mode?: 'udp' | 'tcp' | 'dot' | 'doh';
  /** A CPU, or a list of CPUs in `taskset -c` syntax. */
  readonly cpu?: number | string;
  /** The number of dnsperf threads, 1 by default. */
  readonly threads?: number;
  /** Sets EDNS DO, which requests signatures. */
  readonly dnssecOk?: boolean;
  readonly edns?: boolean;
}

/** Loads a server on 127.0.0.1 with dnsperf and measures its CPU time. */
export function load(server: Child, options: LoadOptions): Load {
  const {
    port,
    file,
    seconds,
    rate = 0,
    outstanding = 100,
    clients = 4,
    mode = 'udp',
    cpu = 1,
    threads = 1,
    dnssecOk = false,
    edns = false,
  } = options;
  const words = [
    '-c',
    String(cpu),
    'dnsperf',
    '-s',
    '127.0.0.1',
    '-p',
    String(port),
    '-d',
    file,
    '-l',
    String(seconds),
    '-q',
    String(outstanding),
    '-c',
    String(clients),
    '-T',
    String(threads),
    '-m',
    mode,
  ];
  if (edns || dnssecOk) words.push('-e');
  if (dnssecOk) words.push('-D');
  if (rate > 0) words.push('-Q', String(rate));
  const before = server.cpuSeconds();
  const { stdout, stderr, status } = spawnSync('taskset', words, { encoding: 'utf8' });
  const cpuUsed = server.cpuSeconds() - before;
  if (status !== 0) throw new Error(`dnsperf: ${stderr}${stdout}`);
  const number = (pattern: RegExp): number => Number(pattern.exec(stdout)?.[1] ?? 'NaN');
  const completed = number(/Queries completed:\s+(\d+)/);
  return {
    completed,
    sent: number(/Queries sent:\s+(\d+)/),
    lost: number(/Queries lost:\s+(\d+)/),
    perSecond: number(/Queries per second:\s+([\d.]+)/),
    latencyMs: number(/Average Latency \(s\):\s+([\d.]+)/) * 1000,
    cpuMicros: (cpuUsed * 1e6) / completed,
    rcodes: /Response codes:\s+(.*)/.exec(stdout)?.[1] ?? '',
  };
}

/** The run with the median value of `figure`. */
export function median<T>(runs: readonly T[], figure: (run: T) => number): T {
  return runs.toSorted((a, b) => figure(a) - figure(b))[Math.floor(runs.length / 2)]!;
}

export interface Turns {
  /** The median round of each server by CPU. */
  readonly middle: Readonly<Record<string, Load>>;
  /**
   * The ratio of one server's CPU per query to another's. It is computed per round, because a disturbance affects both
   * servers.
   */
  ratio(of: string, to: string): Spread;
}

/** Median and quartiles of several rounds. */
export interface Spread {
  readonly median: number;
  readonly quartiles: readonly [number, number];
}

/**
 * Loads several servers in turn for `rounds` rounds after a warm-up, each time with new names. Every other round is run
 * in reverse, so that no server always follows the same one.
 */
export function loadInTurn(
  servers: Readonly<Record<string, { readonly port: number; readonly child: Child }>>,
  options: {
    readonly rounds: number;
    readonly seconds: number;
    readonly outstanding: number;
    /** Returns a file of new names. */
    readonly names: () => string;
  },
): Turns {
  const { rounds, seconds, outstanding, names } = options;
  const runs: Record<string, Load[]> = {};
  const run = (name: string): Load => {
    const { port, child } = servers[name]!;
    return load(child, { port, file: names(), seconds, outstanding });
  };
  for (const name of Object.keys(servers)) {
    run(name);
    runs[name] = [];
  }
  for (let round = 0; round < rounds; round++) {
    const order = Object.keys(servers);
    if (round % 2 === 1) order.reverse();
    for (const name of order) runs[name]!.push(run(name));
  }
  const cpu = (name: string, round: number): number => runs[name]?.[round]?.cpuMicros ?? NaN;
  return {
    middle: Object.fromEntries(
      Object.entries(runs).map(([name, list]) => [
        name,
        median(list, ({ cpuMicros }) => cpuMicros),
      ]),
    ),
    ratio: (of, to) =>
      spread(Array.from({ length: rounds }, (_, round) => cpu(of, round) / cpu(to, round))),
  };
}

/** @param values at least one */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number): number => {
    const place = (sorted.length - 1) * part;
    const below = sorted[Math.floor(place)]!;
    return below + (sorted[Math.ceil(place)]! - below) * (place % 1);
  };
  return { median: at(0.5), quartiles: [at(0.25), at(0.75)] };
}

/** Creates files of distinct names below `bench.`. */
export function freshNames(directory: string, count: number): () => string {
  let nth = 0;
  return () => {
    const file = join(directory, 'names.txt');
    const mark = `${process.pid}-${nth++}`;
    writeFileSync(
      file,
      Array.from({ length: count }, (_, i) => `n${mark}-${i}.bench. A\n`).join(''),
    );
    return file;
  };
}
