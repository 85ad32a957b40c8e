/**
 * The cost of `ndots console` for the server that it reads: `node bench/console-tabs.ts`. Three servers take turns
 * answering service names at 20 000 queries per second. One does not have the `console` directive, one has it but no
 * reader, and one is read by a console with ten open tabs. Compares the server's CPU time per query with that of the
 * first one in the same round. The console and the load run on the other CPU. Also reports the console's CPU use and
 * the share of queries that did not reach it.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answered, type Child } from '../test/kit/child.ts';
import type { NowView } from '../src/tools/watch/view.ts';
import { needConsole, openConsole, tokenFile } from './kit/console.ts';
import { load, spread, type Load } from './kit/dnsperf.ts';
import { figure, figureOf, smoke } from './kit/figures.ts';
import { ndots, need, runSeconds, services, workDirectory } from './kit/peers.ts';

need('dnsperf', 'taskset');
needConsole();
const RATE = smoke ? 1000 : 20_000;
const ROUNDS = smoke ? 1 : 9;
const TABS = 10;
const CPU = { server: 0, load: 1 } as const;
/** The wait for the console's first frames, which take longer than later ones, in milliseconds. */
const SETTLE_MS = smoke ? 500 : 3000;
const directory = workDirectory();
const { manifests, names } = services(directory, 5000);
const hits = join(directory, 'hits.txt');
writeFileSync(hits, [...names.keys()].map((name) => `${name} A\n`).join(''));
const token = tokenFile(directory);
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function begin(port: number, lines: string): Promise<Child> {
  const corefile = `.:${port} {\n bind 127.0.0.1\n errors\n ${lines}\n kubernetes cluster.local {\n manifests ${manifests}\n }\n cache 30\n loadbalance\n}\n`;
  const child = ndots(corefile, directory, { cpu: CPU.server });
  await answered(port, [...names.keys()][0]!);
  return child;
}

const withConsole = (at: number): string => `console 127.0.0.1:${at} {\n token_file ${token}\n }`;
const servers = {
  without: { port: 5300, child: await begin(5300, '') },
  unread: { port: 5301, child: await begin(5301, withConsole(9301)) },
  tabs: { port: 5302, child: await begin(5302, withConsole(9302)) },
} as const;
type Name = keyof typeof servers;

const reader = await openConsole({ server: 9302, page: 8302, token, cpu: CPU.load });
reader.openTabs(TABS);
await wait(SETTLE_MS);

const runs: Record<Name, Load[]> = { without: [], unread: [], tabs: [] };
const busy: number[] = [];
const order = Object.keys(servers) as Name[];
const run = (name: Name): Load => {
  const { port, child } = servers[name];
  const before = reader.child.cpuSeconds();
  const startMs = performance.now();
  const options = { port, file: hits, seconds: runSeconds, rate: RATE, cpu: CPU.load };
  const found = load(child, options);
  if (name === 'tabs')
    busy.push(((reader.child.cpuSeconds() - before) * 1e5) / (performance.now() - startMs));
  return found;
};
for (const name of order) run(name);
busy.length = 0;
for (let round = 0; round < ROUNDS; round++) {
  for (const name of round % 2 === 0 ? order : order.toReversed()) {
    runs[name].push(run(name));
    // This process reads nothing while dnsperf runs, so let the tabs catch up.
    await wait(100);
  }
}
const now = (await reader.view('now')) as NowView;
const sent = [...runs.tabs].reduce((sum, { completed }) => sum + completed, 0);
const [input] = now.inputs;
for (const [name, list] of Object.entries(runs)) {
  const { median: micros } = spread(list.map(({ cpuMicros }) => cpuMicros));
  const { median: rate } = spread(list.map(({ perSecond }) => perSecond));
  console.log(`${name.padEnd(8)} ${rate.toFixed(0)} replies/s, ${micros.toFixed(2)} µs CPU each`);
}
const ratio = (name: Name): ReturnType<typeof spread> =>
  spread(runs[name].map(({ cpuMicros }, round) => cpuMicros / runs.without[round]!.cpuMicros));
figureOf('console without a reader : no console, CPU per query', ratio('unread'), { atMost: 1.01 });
figureOf('console with ten tabs : no console, CPU per query', ratio('tabs'), { atMost: 1.05 });
figure('console with ten tabs: of one CPU, on the machine that shows it', spread(busy).median, '%');
figure(
  'console with ten tabs: messages left out',
  input!.lostByKernel / (sent + input!.lostByKernel),
  '',
);
console.log(`${reader.frames} frames`);
await reader.close();
await Promise.all(Object.values(servers).map(({ child }) => child.stop()));
process.exit(0);
