/**
 * Measures the memory of an API server source, and how it grows during a relist:
 *
 * node --expose-gc test/kit/apiserver/measure-source.ts [--services 10000] [--endpoints 100000] [--pods 100000]
 * [--pages]
 *
 * The server is a separate process. Prints one line per stage.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/server/base/clock.ts';
import { makeLog } from '../../../src/server/base/log.ts';
import { secureRandom } from '../../../src/server/base/random.ts';
import { endpointConnection } from '../../../src/server/kube/api/connection.ts';
import { clusterRecords } from '../../../src/server/plugins/kubernetes/control/cluster-records.ts';
import { apiServerSource } from '../../../src/server/kube/api/api-server-source.ts';

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '10000' },
    endpoints: { type: 'string', default: '100000' },
    pods: { type: 'string', default: '100000' },
    padding: { type: 'string', default: '1000' },
    pages: { type: 'boolean', default: false },
  },
});

const child = spawn(
  process.execPath,
  [
    new URL('main.ts', import.meta.url).pathname,
    ...['services', 'endpoints', 'pods', 'padding'].flatMap((key) => [
      `--${key}`,
      values[key as 'services'],
    ]),
    ...(values.pages ? ['--pages', '--no-streaming'] : []),
  ],
  { stdio: ['pipe', 'pipe', 'inherit'] },
);
process.on('exit', () => child.kill());
const lines = createInterface({ input: child.stdout });
const [first] = (await once(lines, 'line')) as [string];
const url = first.split(' ')[1]!;

const collect = globalThis.gc ?? ((): void => {});
let peak = 0;
const watching = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 5);

interface Sample {
  readonly rss: number;
  readonly held: number;
}

async function sample(): Promise<Sample> {
  for (let i = 0; i < 3; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const { rss, heapUsed, external } = process.memoryUsage();
  return { rss, held: heapUsed + external };
}

const mib = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
const before = await sample();
const source = apiServerSource({
  connection: endpointConnection(url),
  version: 'measured',
  reduction: clusterRecords({ podNames: false, outside: false }),
  wanted: {
    endpoints: true,
    pods: true,
    multicluster: false,
    labels: '',
    namespaceLabels: '',
    zones: false,
  },
  clock: systemClock,
  random: secureRandom,
  log: makeLog((line) => process.stdout.write(`${line}\n`)),
});
let changes = 0;
let started = performance.now();
const synced = new Promise<void>((resolve) => {
  source.start({
    changes: (batch) => {
      changes += batch.length;
    },
    synced: () => source.synced && resolve(),
  });
});
await synced;
const firstMs = performance.now() - started;
const firstPeak = peak;
const after = await sample();
console.log(`before: rss ${mib(before.rss)}, heap+external ${mib(before.held)}`);
console.log(
  `first list: ${changes} objects in ${firstMs.toFixed(0)} ms, peak rss ${mib(firstPeak)}; then rss ${mib(after.rss)}, heap+external ${mib(after.held)} (+${mib(after.held - before.held)})`,
);

for (let round = 1; round <= 3; round++) {
  peak = 0;
  changes = 0;
  started = performance.now();
  const seen = (): Promise<number> => {
    child.stdin.write('seen\n');
    return once(lines, 'line').then(([line]) => Number((line as string).split(' ')[1]));
  };
  const from = await seen();
  child.stdin.write('compact\n');
  // Each of the four kinds sends at least two requests: the expired watch, then the list.
  while ((await seen()) < from + 8) await new Promise((resolve) => setTimeout(resolve, 50));
  let quiet = 0;
  for (let last = process.cpuUsage().user; quiet < 10;) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const now = process.cpuUsage().user;
    quiet = now - last < 5000 ? quiet + 1 : 0;
    last = now;
  }
  const relisted = peak;
  const settled = await sample();
  console.log(
    `relist ${round}: ${changes} changes, ${(performance.now() - started - 500).toFixed(0)} ms, peak rss ${mib(relisted)} = ${(relisted / after.rss).toFixed(2)} x steady; then rss ${mib(settled.rss)}, heap+external ${mib(settled.held)}`,
  );
}
clearInterval(watching);
await source.stop();
child.kill();
