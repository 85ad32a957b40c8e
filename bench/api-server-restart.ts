/**
 * The 5 000-node restart (kubernetes #139117). A real API server with the objects from Kubernetes' scalability test is
 * killed and restarted while replicas of ndots and CoreDNS watch it. Measures each program's memory before the restart
 * and its peak during the restart. Also measures the time from when the API server is ready to the first reply that
 * shows a later change. For the API server, it measures CPU time and the number of lists. Run `NODES=5000 REPLICAS=10
 * npm run bench -- api-server-restart`. The defaults are 500 nodes, two replicas, and one of CoreDNS (`COREDNS=FILE`).
 * docs/decisions/api-server-restart.md has the plan for the whole test.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { request, Agent } from 'node:https';
import { createSocket } from 'node:dgram';
import { join } from 'node:path';
import { Cluster } from '../test/kit/cluster/cluster.ts';
import { noApiServer } from '../test/kit/cluster/programs.ts';
import { answered, question, start, type Child } from '../test/kit/child.ts';
import { freePorts } from '../test/kit/free-ports.ts';
import { figure, smoke } from './kit/figures.ts';
import { FIRST, loadTestObjects, type CreatedObject } from './kit/load-test-objects.ts';
import { corednsProgram, ndots, workDirectory } from './kit/peers.ts';

// Building the cluster's programs takes ten minutes, which is too long for a smoke test.
const isBrief = smoke && process.env['NODES'] === undefined;
const reason = isBrief ? 'a smoke run needs NODES' : noApiServer();
if (reason !== null) {
  console.log(`skipped: ${reason}`);
  process.exit(0);
}
const nodes = Number(process.env['NODES'] ?? (smoke ? 100 : 500));
const replicas = Number(process.env['REPLICAS'] ?? 2);
/** Parallel API requests while objects are created. */
const PARALLEL = 32;
/** The observation time after the restart. It is long enough for relists and garbage collections to finish. */
const WATCH_MS = smoke ? 5000 : 60_000;
const PATIENCE_MS = 180_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const directory = workDirectory();

async function create(cluster: Cluster, objects: Iterable<CreatedObject>): Promise<number> {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: PARALLEL,
    ca: readFileSync(cluster.authorityFile),
  });
  let created = 0;
  const post = ({ path, object }: CreatedObject): Promise<void> =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify(object);
      const sent = request(
        `${cluster.url}${path}`,
        {
          method: 'POST',
          agent,
          headers: {
            authorization: 'Bearer token-of-admin',
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
          },
        },
        (reply) => {
          let text = '';
          reply.on('data', (chunk: Buffer) => (text += chunk.toString()));
          reply.on('end', () => {
            if (reply.statusCode === 201) resolve();
            else reject(new Error(`${path}: ${reply.statusCode} ${text.slice(0, 500)}`));
          });
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
  const worker = async (iterator: Iterator<CreatedObject>): Promise<void> => {
    for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
      await post(next.value);
      created++;
    }
  };
  // A namespace must exist before its objects.
  const [first, rest] = [[] as CreatedObject[], [] as CreatedObject[]];
  for (const each of objects) (each.path === '/api/v1/namespaces' ? first : rest).push(each);
  for (const some of [first, rest]) {
    const iterator = some[Symbol.iterator]();
    await Promise.all(Array.from({ length: PARALLEL }, () => worker(iterator)));
  }
  agent.destroy();
  return created;
}

/** The peak resident memory since the last `clear_refs`, in MiB. */
function peakMiB(child: Child): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

/** The milliseconds until the server answers a query for the name with an address. */
async function untilAnswered(port: number, name: string): Promise<number> {
  const beganMs = performance.now();
  const socket = createSocket('udp4');
  let found = false;
  socket.on('message', (reply) => (found ||= reply.readUInt16BE(6) > 0));
  while (!found && performance.now() - beganMs < PATIENCE_MS) {
    socket.send(question(name, 1), port, '127.0.0.1');
    await pause(50);
  }
  socket.close();
  return found ? performance.now() - beganMs : NaN;
}

interface Replica {
  readonly name: string;
  readonly port: number;
  readonly child: Child;
}

async function replica(cluster: Cluster, name: 'ndots' | 'CoreDNS', nth: number): Promise<Replica> {
  const [port] = await freePorts(1);
  const corefile = `.:${port} {\n  bind 127.0.0.1\n  errors\n  kubernetes cluster.local {\n    kubeconfig ${cluster.kubeconfig('admin')}\n    pods insecure\n  }\n  cache 30 {\n    disable denial cluster.local\n  }\n}\n`;
  const program = corednsProgram();
  let child: Child;
  if (name === 'ndots') child = ndots(corefile, directory);
  else {
    const file = join(directory, `Corefile-restart-${nth}`);
    writeFileSync(file, corefile);
    child = start('coredns', [program!, '-conf', file]);
  }
  return { name, port: port!, child };
}

const cluster = await Cluster.start();
const startedMs = performance.now();
const created = await create(cluster, loadTestObjects(nodes));
console.log(`${created} objects in ${Math.round((performance.now() - startedMs) / 1000)} s`);
const all: Replica[] = [];
for (let n = 0; n < replicas; n++) all.push(await replica(cluster, 'ndots', n));
if (corednsProgram() !== null) all.push(await replica(cluster, 'CoreDNS', 0));
else console.log('CoreDNS is not there (COREDNS=FILE)');
for (const { port } of all) await answered(port, FIRST.name, PATIENCE_MS);
await pause(smoke ? 2000 : 15_000);
const before = all.map(({ child }) => child.residentMiB());
for (const { child } of all) writeFileSync(`/proc/${child.pid}/clear_refs`, '5');

await cluster.killApiServer();
await cluster.startApiServer();
const cpuBefore = cluster.apiServerCpuSeconds();
const news = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'news', namespace: 'load-0' } };
await create(cluster, [
  {
    path: '/api/v1/namespaces/load-0/services',
    object: { ...news, spec: { clusterIP: '10.0.15.1', ports: [{ port: 80 }] } },
  },
]);
const tookMs = await Promise.all(
  all.map(({ port }) => untilAnswered(port, 'news.load-0.svc.cluster.local.')),
);
await pause(WATCH_MS);
const lists = await cluster.kubectl('get', '--raw', '/metrics').then((text) =>
  text
    .split('\n')
    .filter((line) =>
      /^apiserver_request_total\{.*resource="(services|endpointslices|namespaces)".*verb="LIST"/.test(
        line,
      ),
    )
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0),
);

const of = (name: string, values: readonly number[]): number[] =>
  values.filter((_, at) => all[at]!.name === name);
const worst = (name: string, values: readonly number[]): number => Math.max(...of(name, values));
const peaks = all.map(({ child }) => peakMiB(child));
const label = `${nodes} nodes`;
for (const name of new Set(all.map((each) => each.name))) {
  figure(`${label}, ${name}: memory before`, worst(name, before), 'MiB');
  figure(`${label}, ${name}: peak memory of the restart`, worst(name, peaks), 'MiB');
  figure(`${label}, ${name}: peak : before`, worst(name, peaks) / worst(name, before));
  figure(`${label}, ${name}: ready to first correct answer`, worst(name, tookMs), 'ms');
}
figure(`${label}, API server: CPU after its start`, cluster.apiServerCpuSeconds() - cpuBefore, 's');
figure(`${label}, API server: lists`, lists);
await Promise.all(all.map(({ child }) => child.stop()));
await cluster[Symbol.asyncDispose]();
process.exit(0);
