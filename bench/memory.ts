/**
 * Resident memory when idle with the example, and with a large cluster behind an API server. The cluster has 10 000
 * Services, 100 000 endpoints and 100 000 pods. Its memory is measured both in the steady state and at the peak of a
 * relist. The peers are idle programs that use the same runtime with one worker thread. One is empty, and the other has
 * loaded a server's runtime modules and the addon for batched UDP.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { answered, start, type Child } from '../test/kit/child.ts';
import { beside, figure, smoke } from './kit/figures.ts';
import { apiCorefile, apiServer, ndots, workDirectory } from './kit/peers.ts';

const home = fileURLToPath(new URL('../', import.meta.url));
const directory = workDirectory();
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The process's private memory, without the pages of program files, which the system shares and can reclaim. */
function ownMiB(child: Child): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

/** The maximum of `look` during this time. */
async function highest(look: () => number, ms: number): Promise<number> {
  let found = 0;
  for (const until = performance.now() + ms; performance.now() < until; await pause(10))
    found = Math.max(found, look());
  return found;
}

function peakMiB(child: Child): number {
  return (
    Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) /
    1024
  );
}

const emptyFile = join(directory, 'empty.mjs');
writeFileSync(
  emptyFile,
  `import { Worker } from 'node:worker_threads';\nnew Worker('setInterval(() => {}, 1e6)', { eval: true });\n`,
);
const empty = start('empty', [process.execPath, emptyFile]);
const loadedFile = join(directory, 'loaded.mjs');
const needs = `for (const name of ['http', 'net', 'dgram', 'crypto']) process.getBuiltinModule(name);\n`;
const addon = `process.getBuiltinModule('module').createRequire(${JSON.stringify(import.meta.url)})('koffi').load(null);`;
writeFileSync(
  loadedFile,
  `import { Worker } from 'node:worker_threads';\n${needs}new Worker(${JSON.stringify(`${needs}${addon}setInterval(() => {}, 1e6)`)}, { eval: true });\n`,
);
const loaded = start('loaded', [process.execPath, loadedFile]);
const example = start('ndots', [join(home, 'bin/ndots'), 'serve', '--example']);
await answered(1053, 'backend.critical-app.svc.cluster.local');
await pause(smoke ? 500 : 5000);
beside('node', process.version);
figure('idle, example cluster', example.residentMiB(), 'MiB', { atMost: 75 });
figure('idle, example cluster, without files', ownMiB(example), 'MiB');
figure('empty program with a worker thread', empty.residentMiB(), 'MiB');
figure('empty program with a worker thread, without files', ownMiB(empty), 'MiB');
figure('the same with http, net, crypto and koffi loaded', loaded.residentMiB(), 'MiB');
figure('idle : empty program', example.residentMiB() / empty.residentMiB());
await Promise.all([example.stop(), empty.stop(), loaded.stop()]);

const [services, endpoints, pods] = smoke ? [100, 1000, 1000] : [10_000, 100_000, 100_000];
const api = await apiServer(5701, [
  '--services',
  `${services}`,
  '--endpoints',
  `${endpoints}`,
  '--pods',
  `${pods}`,
]);
for (const [what, mode, autopath, goal] of [
  ['autopath @name', 'insecure', 'autopath @name', 120],
  ['autopath @kubernetes, verified', 'verified', 'autopath @kubernetes', 170],
] as const) {
  const server = ndots(apiCorefile(5710, 5701, mode, autopath), directory);
  await answered(5710, 'service-0.team-0.svc.cluster.local', 90_000);
  await pause(smoke ? 500 : 8000);
  const steady = server.residentMiB();
  const ownSteady = ownMiB(server);
  writeFileSync(`/proc/${server.pid}/clear_refs`, '5'); // Resets the peak.
  api.tell('compact');
  const ownPeak = await highest(() => ownMiB(server), smoke ? 1000 : 15_000);
  const peak = peakMiB(server);
  figure(`${what}, steady`, steady, 'MiB', { atMost: goal });
  figure(`${what}, peak at a relist`, peak, 'MiB', { atMost: goal });
  figure(`${what}, peak : steady, without files`, ownPeak / ownSteady);
  await server.stop();
}
await api.stop();
process.exit(0);
