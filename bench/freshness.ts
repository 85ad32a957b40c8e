/**
 * The time from a change at the API server to the first reply that shows it, at 500 changes per second. One headless
 * service is changed repeatedly and queried all the time. The result is compared with the server's own
 * coredns_kubernetes_dns_programming_duration_seconds.
 */
import { createSocket } from 'node:dgram';
import { ApiServer } from '../test/kit/apiserver/server.ts';
import { populate, slice } from '../test/kit/apiserver/populate.ts';
import { answered, question } from '../test/kit/child.ts';
import { figure, smoke } from './kit/figures.ts';
import { apiCorefile, ndots, workDirectory } from './kit/peers.ts';

const directory = workDirectory();
const api = await ApiServer.start({ port: 5901 });
const services = smoke ? 100 : 1000;
populate(api, { services, endpoints: services * 5, pods: 0 });
const probe = (address: string): void => {
  api.put('endpointslices', {
    metadata: {
      name: 'probe-1',
      namespace: 'team-0',
      labels: { 'kubernetes.io/service-name': 'probe' },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString() },
    },
    addressType: 'IPv4',
    ports: [],
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
  } as never);
};
api.put('services', {
  metadata: { name: 'probe', namespace: 'team-0' },
  spec: { type: 'ClusterIP', clusterIP: 'None', clusterIPs: ['None'], ports: [] },
} as never);
probe('10.9.0.0');
const server = ndots(apiCorefile(5910, 5901, 'insecure', ''), directory);
await answered(5910, 'probe.team-0.svc.cluster.local', 60_000);
let turn = 0;
const churn = setInterval(() => {
  for (let i = 0; i < 5; i++)
    api.put('endpointslices', slice(turn++ % services, turn % 60_000, 1 + (turn % 5)) as never);
}, 10);
const socket = createSocket('udp4');
const query = question('probe.team-0.svc.cluster.local', 1);
const times: number[] = [];
for (let i = 1; i <= (smoke ? 20 : 1000); i++) {
  const wanted = `10.9.${i >> 8}.${i & 255}`;
  await new Promise<void>((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error(`${wanted} was never answered`)), 5000);
    const begin = performance.now();
    const ask = setInterval(() => socket.send(query, 5910, '127.0.0.1'), 0.5);
    socket.removeAllListeners('message');
    socket.on('message', (reply) => {
      if ([...reply.subarray(reply.length - 4)].join('.') !== wanted) return;
      times.push(performance.now() - begin);
      clearInterval(ask);
      clearTimeout(limit);
      resolve();
    });
    probe(wanted);
  });
}
clearInterval(churn);
socket.close();
times.sort((a, b) => a - b);
const at = (share: number): number =>
  times[Math.min(times.length - 1, Math.floor(times.length * share))]!;
console.log(`change to first changed answer, ${times.length} changes among 500/s`);
figure('change to first changed answer, p50', at(0.5), 'ms');
figure('change to first changed answer, p99', at(0.99), 'ms', { atMost: 20 });
figure('change to first changed answer, most', at(1), 'ms');
const text = await (await fetch('http://127.0.0.1:5913/metrics')).text();
console.log(
  text
    .split('\n')
    .filter((line) =>
      /dns_programming_duration_seconds_(bucket.*le="0.0(08|16|32)"|count)/.test(line),
    )
    .join('\n'),
);
await server.stop();
await api.stop();
process.exit(0);
