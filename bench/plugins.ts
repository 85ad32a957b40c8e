/**
 * The cost of plugins per query, with ten rules each, none of which matches. Compares the whole server's CPU time with
 * that of the same server without the plugin, alternating between them. Queries are for service names that are answered
 * from memory. For plugins in front of upstreams, they are for forwarded names.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answered, printed, start, type Child } from '../test/kit/child.ts';
import { load, median } from './kit/dnsperf.ts';
import { figure, smoke } from './kit/figures.ts';
import {
  ndots,
  need,
  rounds,
  runSeconds,
  services,
  wildcardUpstream,
  workDirectory,
} from './kit/peers.ts';

need('dnsperf', 'unbound', 'taskset');
const directory = workDirectory();
const { manifests, names } = services(directory, 2000);
const hits = join(directory, 'hits.txt');
writeFileSync(hits, [...names.keys()].map((name) => `${name} A\n`).join(''));
const forwarded = join(directory, 'forwarded.txt');
writeFileSync(forwarded, Array.from({ length: 5000 }, (_, i) => `n${i}.bench. A\n`).join(''));
const socket = join(directory, 'dnstap.sock');
const ten = (line: (i: number) => string): string =>
  Array.from({ length: 10 }, (_, i) => line(i)).join('\n');

/** The lines added to a server that answers service names from memory. */
const fromMemory: Readonly<Record<string, string>> = {
  'rewrite, exact': ten((i) => `rewrite name exact a${i}.example.org b${i}.example.org`),
  'rewrite, suffix': ten((i) => `rewrite name suffix .a${i}.example.org .b${i}.example.org`),
  'rewrite, regex': ten(
    (i) => `rewrite name regex (.*)\\.a${i}\\.example\\.org {1}.b${i}.example.org`,
  ),
  template: ten(
    (i) =>
      `template IN A {\n match ^ip-(\\d+)-${i}\\.example\\.org\\.$\n answer "{{ .Name }} 60 IN A 192.0.2.1"\n fallthrough\n}`,
  ),
  acl: `acl {\n${ten((i) => `block type A net 10.${i}.0.0/16`)}\n}`,
  dns64: 'dns64 {\n allow_ipv4\n}',
  log: 'log',
  top: 'top',
  slowlog: 'slowlog',
  dnstap: `dnstap ${socket} full`,
  rrl: 'rrl {\n responses-per-second 1000000\n}',
  fairqueue: 'fairqueue',
  visibility: `visibility cluster.local {\n${ten((i) => `deny from team-${i}-* @unknown to team-${i}-*`)}\n}`,
};
/** Lines added to a server that forwards everything. */
const inFront: Readonly<Record<string, string>> = {
  leakguard: 'leakguard',
  lkg: 'lkg',
  fairqueue: 'fairqueue',
};

const sink = start('sink', [process.execPath, 'bench/peers/dnstap-sink.ts', socket]);
await printed(sink, /listening/, 10_000);
const upstream = wildcardUpstream(directory, 5390, 1);
await answered(5390, 'n0.bench.');
let port = 5300;

const memoryServer = (lines: string): string =>
  `.:${port} {\n bind 127.0.0.1\n errors\n ${lines}\n kubernetes cluster.local {\n manifests ${manifests}\n }\n cache 30\n loadbalance\n}\n`;
const forwarder = (lines: string): string =>
  `.:${port} {\n bind 127.0.0.1\n errors\n ${lines}\n forward . 127.0.0.1:5390\n}\n`;

async function begin(
  corefile: string,
  name: string,
): Promise<{ readonly child: Child; readonly port: number }> {
  const child = ndots(corefile, directory, { cpu: 0 });
  const at = port++;
  await answered(at, name);
  return { child, port: at };
}

async function compare(
  label: string,
  corefile: (lines: string) => string,
  lines: string,
  file: string,
  name: string,
): Promise<void> {
  const bare = await begin(corefile(''), name);
  const full = await begin(corefile(lines), name);
  const seconds = smoke ? 1 : Math.ceil(runSeconds / 2);
  const run = ({ child, port: at }: typeof bare): ReturnType<typeof load> =>
    load(child, { port: at, file, seconds });
  if (!smoke) {
    run(bare);
    run(full);
  }
  const pairs = Array.from({ length: rounds }, () => [run(bare), run(full)] as const);
  const [without, with_] = [0, 1].map((index) =>
    median(
      pairs.map((pair) => pair[index]!),
      ({ cpuMicros }) => cpuMicros,
    ),
  );
  console.log(
    `${label.padEnd(22)} ${without!.cpuMicros.toFixed(2)} µs → ${with_!.cpuMicros.toFixed(2)} µs, lost ${with_!.lost}`,
  );
  figure(`CPU per query, ${label} : without`, with_!.cpuMicros / without!.cpuMicros, '', {
    atMost: 1.25,
  });
  await Promise.all([bare.child.stop(), full.child.stop()]);
}

const wanted = process.env['PLUGINS']?.split(',');
/** The plugins to measure, one at a time. In smoke mode, all of them are in one server. */
function chosen(plugins: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  const entries = Object.entries(plugins).filter(([label]) => wanted?.includes(label) ?? true);
  return smoke ? [['all plugins', entries.map(([, lines]) => lines).join('\n')]] : entries;
}
for (const [label, lines] of chosen(fromMemory))
  await compare(label, memoryServer, lines, hits, [...names.keys()][0]!);
for (const [label, lines] of chosen(inFront))
  await compare(`${label}, forwarded`, forwarder, lines, forwarded, 'n0.bench.');
await Promise.all([upstream.stop(), sink.stop()]);
process.exit(0);
