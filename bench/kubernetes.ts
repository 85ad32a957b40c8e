/**
 * The cost of a reply by the kubernetes plugin, and the memory used by its view of a cluster: `node
 * bench/kubernetes.ts`. The cluster has 10 000 services with 10 endpoints each. Queries are decoded and then answered
 * by the plugin's handler, while sockets and stamping are measured elsewhere. Garbage is the heap growth per query.
 */
import { isLater } from '../src/server/base/maybe.ts';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { KubernetesAnswerer } from '../src/server/plugins/kubernetes/worker/answer.ts';
import { typeNumber } from '../src/server/wire/iana.ts';
import { parseName } from '../src/server/wire/name.ts';
import { makeQuery, Query } from '../src/server/transport/query.ts';
import { answererOf, replicatedCluster, manyObjects } from '../test/kit/replicated-cluster.ts';
import { smoke } from './kit/figures.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const services = smoke ? 1000 : 10_000;
const endpoints = 10;

function mebibytes(): number {
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 2 ** 20;
}

function weigh(pods: boolean): void {
  // The publisher's own (pod) tables belong to the main thread, so two copies show the worker's share.
  const first = replicatedCluster(manyObjects(services, endpoints, pods));
  const before = mebibytes();
  const second = replicatedCluster(first.source.objects);
  const after = mebibytes();
  const total = services * (1 + endpoints) + (pods ? services * endpoints : 0);
  const size = (after - before) * 2 ** 20;
  console.log(
    `${pods ? 'with   ' : 'without'} pods: publisher and copy ${(after - before).toFixed(1)} MiB, ` +
      `${(size / total).toFixed(0)} bytes per service, endpoint and pod (${second.cluster.sizes.services} services)`,
  );
}

const query = new Query();
const end = (): never => {
  throw new Error('asked the next plugin');
};

interface Cost {
  readonly ns: number;
  readonly bytes: number;
}

function measure(
  answerer: KubernetesAnswerer,
  names: readonly string[],
  type: string,
  rounds: number,
): Cost {
  const number = typeNumber(type)!;
  const messages = names.map((name) => bytesOf(name, number));
  const ask = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const bytes = messages[i % messages.length]!;
      query.read(bytes, 0, bytes.length);
      if (isLater(answerer.answer(query, end))) throw new Error('had to wait');
    }
  };
  ask(Math.max(rounds, 3 * messages.length));
  let ns = Infinity;
  for (let round = 0; round < 3; round++) {
    const began = process.hrtime.bigint();
    ask(rounds);
    ns = Math.min(ns, Number(process.hrtime.bigint() - began) / rounds);
  }
  collect();
  const before = process.memoryUsage().heapUsed;
  ask(10_000);
  return { ns, bytes: (process.memoryUsage().heapUsed - before) / 10_000 };
}

function bytesOf(name: string, type: number): Uint8Array {
  const { bytes, start, end } = makeQuery(parseName(name), type);
  return bytes.slice(start, end);
}

function report(what: string, { ns, bytes }: Cost): void {
  console.log(
    `${what.padEnd(46)} ${ns.toFixed(0).padStart(6)} ns ${Math.max(0, bytes).toFixed(1).padStart(8)} bytes`,
  );
}

weigh(false);
weigh(true);

const { cluster } = replicatedCluster(manyObjects(services, endpoints, false));
const all = Array.from(
  { length: services },
  (_, i) => `service-${i}.team-${i % 50}.svc.cluster.local.`,
);
const hot = all.slice(0, 5000);
const missing = hot.slice(0, 2000).map((name) => `www.example.com.${name}`);
const strangerCount = smoke ? 6000 : 60_000;
const strangers = Array.from(
  { length: strangerCount },
  (_, i) => `stranger-${i}.team-${i % 50}.svc.cluster.local.`,
);
const million = smoke ? 10_000 : 1_000_000;
report('read only (subtract from the others)', readOnly());
report('A, 5 000 names, remembered', measure(answererOf(cluster), hot, 'A', million));
report(
  'AAAA without data, 5 000 names, remembered',
  measure(answererOf(cluster), hot, 'AAAA', million),
);
report(
  'NXDOMAIN of a search path, 2 000 names',
  measure(answererOf(cluster), missing, 'A', million),
);
report(
  'NXDOMAIN, never the same name twice',
  measure(answererOf(cluster), strangers, 'A', strangerCount),
);
report('A, built again', measure(forgetful(), hot, 'A', million / 5));
report(
  'SRV, built again',
  measure(
    forgetful(),
    hot.map((name) => `_http._tcp.${name}`),
    'SRV',
    million / 10,
  ),
);
report(
  'SRV, 2 000 names, remembered',
  measure(answererOf(cluster), hot.slice(0, 2000), 'SRV', million),
);
const pointers = Array.from({ length: 2000 }, (_, i) => `${i & 255}.${i >> 8}.0.10.in-addr.arpa.`);
report('PTR of an endpoint, built again', measure(forgetful(), pointers, 'PTR', million / 10));
report('PTR of an endpoint, remembered', measure(answererOf(cluster), pointers, 'PTR', million));

/**
 * An answerer whose stored replies are always outdated, because all objects behind a query change before it is sent.
 */
function forgetful(): KubernetesAnswerer {
  const answerer = answererOf(cluster);
  const records = hot.map((_, i) => cluster.serviceNamed(`team-${i % 50}`, `service-${i}`)!);
  let at = 0;
  return {
    answer(asked: Query, next: never) {
      records[at++ % records.length]!.version++;
      cluster.version++;
      return answerer.answer(asked, next);
    },
  } as unknown as KubernetesAnswerer;
}

function readOnly(): Cost {
  const bytes = bytesOf(hot[0]!, 1);
  const began = process.hrtime.bigint();
  for (let i = 0; i < 3_000_000; i++) query.read(bytes, 0, bytes.length);
  return { ns: Number(process.hrtime.bigint() - began) / 3_000_000, bytes: 0 };
}
