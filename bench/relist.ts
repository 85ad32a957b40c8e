/**
 * Latency while a whole cluster (10 000 services, 100 000 endpoints, 100 000 pods) is listed anew, counted from the moment each
 * query was due, beside the same undisturbed: on all processors, and with the limits of a container. The control thread takes
 * the list in; it must not take the workers' processor, nor use up the container's limit.
 *
 * The client asks with real-time priority where that is allowed, so that only the server's delays are counted.
 */
import { execFile, spawnSync } from 'node:child_process';
import { setPriority } from 'node:os';
import { answered } from '../test/kit/child.ts';
import { limitedGroup } from './kit/control-group.ts';
import { figure } from './kit/figures.ts';
import {
  apiCorefile,
  apiServer,
  compile,
  ndots,
  need,
  rounds,
  serviceQuestions,
  smoke,
  workFolder,
  type Pace,
} from './kit/peers.ts';

need('gcc', 'taskset', 'chrt');
const folder = workFolder();
const program = compile('pace.c', folder);
const [services, pods] = smoke ? [100, 1000] : [10_000, 100_000];
const seconds = smoke ? 1 : 8;
const file = serviceQuestions(folder, services);
const mayBeRealTime = spawnSync('chrt', ['-f', '10', 'true']).status === 0;

function pace(port: number, rate: number): Promise<Pace> {
  const words = ['taskset', '-c', '1', program, String(port), String(rate), String(seconds), file];
  const [first, ...rest] = mayBeRealTime ? ['chrt', '-f', '10', ...words] : words;
  return new Promise((resolve, reject) => {
    execFile(first!, rest, (error, stdout) => {
      if (error) reject(error);
      else resolve(JSON.parse(stdout) as Pace);
    });
  });
}

const middle = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

const size = ['--services', `${services}`, '--endpoints', `${pods}`, '--pods', `${pods}`];
const api = await apiServer(5821, size);
// It would be on another machine: what it takes it takes last.
setPriority(api.pid, 19);

async function measure(title: string, port: number, rate: number, limit: number): Promise<void> {
  const group = limit === Infinity ? null : limitedGroup(limit);
  if (group === null && limit !== Infinity) {
    console.log(`${title}: skipped, no control group can be made here`);
    return;
  }
  const server = ndots(apiCorefile(port, 5821, 'verified', 'autopath @name'), folder);
  await answered(port, 'service-0.team-0.svc.cluster.local', 90_000);
  const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 3000));
  await pause();
  group?.take(server.pid);
  const quiet: Pace[] = [];
  const busy: Pace[] = [];
  let throttled = 0;
  for (let round = 0; round < rounds; round++) {
    quiet.push(await pace(port, rate));
    const before = group?.throttled() ?? 0;
    api.tell('compact');
    busy.push(await pace(port, rate));
    throttled += (group?.throttled() ?? 0) - before;
    await pause();
  }
  await server.stop();
  group?.remove();
  const show = (name: string, runs: readonly Pace[]): void =>
    console.log(
      `  ${name.padEnd(14)} p50 ${middle(runs.map(({ p50 }) => p50))} µs  p99 ${middle(runs.map(({ p99 }) => p99))} µs  ` +
        `p99.9 ${middle(runs.map(({ p999 }) => p999))} µs  lost ${runs.reduce((sum, { sent, received }) => sum + sent - received, 0)}`,
    );
  console.log(`${title}, ${rate} queries/s`);
  show('undisturbed', quiet);
  show('listed anew', busy);
  const [before, after] = [quiet, busy].map((runs) => middle(runs.map(({ p999 }) => p999)));
  if (group !== null) console.log(`  stopped by the limit ${throttled} times`);
  figure(`p99.9, listed anew : undisturbed, ${title}`, after! / before!, '', { atMost: 2 });
}

await measure('all processors', 5830, smoke ? 1000 : 10_000, Infinity);
await measure('limit of 1 processor', 5840, smoke ? 1000 : 5000, 1);
await measure('limit of half a processor', 5850, smoke ? 500 : 3000, 0.5);
await api.stop();
process.exit(0);
