/**
 * Latency while a whole cluster (10 000 services, 100 000 endpoints, 100 000 pods) is relisted, compared with
 * undisturbed load. It is measured from the time when each query is due, both on all CPUs and with a container's
 * limits. The control thread reads the list; it must not use the workers' CPU or exhaust the container's limit. As a
 * control, another program reads the same lists on the same machine.
 */
import { spawn } from 'node:child_process';
import { answered } from '../test/kit/child.ts';
import { limitedGroup } from './kit/control-group.ts';
import {
  elsewhere,
  moveElsewhere,
  takeRounds,
  tellRatio,
  type Disturbance,
} from './kit/disturbance.ts';
import {
  apiCorefile,
  apiServer,
  compile,
  ndots,
  need,
  serviceQuestions,
  workDirectory,
} from './kit/peers.ts';
import { smoke } from './kit/figures.ts';

need('gcc', 'taskset', 'chrt', 'curl');
const API = 5821;
const directory = workDirectory();
const program = compile('pace.c', directory);
const [services, pods] = smoke ? [100, 1000] : [10_000, 100_000];
const seconds = smoke ? 1 : 4;
const rounds = smoke ? 1 : 4;
const file = serviceQuestions(directory, services);

const size = ['--services', `${services}`, '--endpoints', `${pods}`, '--pods', `${pods}`];
const api = await apiServer(API, size);
moveElsewhere(api.pid);

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Another program that reads and discards the lists that a server with this Corefile reads. */
const readElsewhere: Disturbance = () => {
  const lists = ['api/v1/pods', 'api/v1/services', 'apis/discovery.k8s.io/v1/endpointslices'];
  const words = lists.flatMap((list) => ['-o', '/dev/null', `http://127.0.0.1:${API}/${list}`]);
  const [command, ...rest] = [...elsewhere, 'curl', '-s', ...words];
  const reader = spawn(command!, rest);
  readers.push(reader.pid ?? 0);
  return () => {
    reader.kill();
    readers.pop();
  };
};
const readers: number[] = [];

async function measure(title: string, port: number, rate: number, limit: number): Promise<void> {
  const group = limit === Infinity ? null : limitedGroup(limit);
  if (group === null && limit !== Infinity) {
    console.log(`${title}: skipped, no control group can be made here`);
    return;
  }
  const server = ndots(apiCorefile(port, API, 'verified', 'autopath @name'), directory);
  await answered(port, 'service-0.team-0.svc.cluster.local', 90_000);
  await pause(smoke ? 300 : 3000);
  group?.take(server.pid);
  let throttled = 0;
  const listedAnew: Disturbance = () => {
    const before = group?.throttled() ?? 0;
    api.tell('compact');
    return async () => {
      throttled += (group?.throttled() ?? 0) - before;
      await pause(smoke ? 300 : 2000);
    };
  };
  const disturbances = limit === Infinity ? [listedAnew, readElsewhere] : [listedAnew];
  const load = { program, port, rate, seconds, file };
  const own = (): readonly number[] => [server.pid, api.pid, ...readers];
  const taken = await takeRounds(rounds, load, disturbances, own);
  await server.stop();
  group?.remove();
  console.log(`${title}, ${rate} queries/s`);
  tellRatio(`p99.9, listed again : undisturbed, ${title}`, taken, 0, { atMost: 2 });
  if (group !== null) console.log(`  stopped by the limit ${throttled} times`);
  else tellRatio('p99.9, lists read by another program : undisturbed', taken, 1, null);
}

await measure('all CPUs', 5830, smoke ? 1000 : 10_000, Infinity);
await measure('limit of 1 CPU', 5840, smoke ? 1000 : 5000, 1);
await measure('limit of half a CPU', 5850, smoke ? 500 : 3000, 0.5);
await api.stop();
process.exit(0);
