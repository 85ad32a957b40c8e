/**
 * The latency at 20 000 queries per second, measured from the time when each query is due. It is measured without
 * disturbance, and again while everything (100 000 endpoints) is relisted and metrics are scraped every second.
 */
import { answered } from '../test/kit/child.ts';
import { figure, smoke } from './kit/figures.ts';
import {
  apiCorefile,
  apiServer,
  compile,
  ndots,
  need,
  pace,
  serviceQuestions,
  workDirectory,
  type Pace,
} from './kit/peers.ts';

need('gcc', 'taskset');
const directory = workDirectory();
const program = compile('pace.c', directory);
const [services, endpoints] = smoke ? [100, 1000] : [10_000, 100_000];
const file = serviceQuestions(directory, services);
const api = await apiServer(5801, ['--services', `${services}`, '--endpoints', `${endpoints}`], 1);
const server = ndots(apiCorefile(5810, 5801, 'insecure', 'autopath @name'), directory, {});
await answered(5810, 'service-0.team-0.svc.cluster.local', 90_000);
const rate = smoke ? 2000 : 20_000;
const seconds = smoke ? 2 : 15;
await pace(program, 5810, rate, 2, file, 1);
const quiet = await pace(program, 5810, rate, seconds, file, 1);
const scraping = setInterval(
  () =>
    void fetch('http://127.0.0.1:5813/metrics')
      .then((reply) => reply.text())
      .catch(() => undefined),
  1000,
);
const relisting = setInterval(() => api.tell('compact'), smoke ? 700 : 5000);
api.tell('compact');
const busy = await pace(program, 5810, rate, seconds, file, 1);
clearInterval(scraping);
clearInterval(relisting);
const show = (name: string, { sent, received, errors, p50, p99, p999, max }: Pace): void =>
  console.log(
    `${name.padEnd(28)} p50 ${p50} µs  p99 ${p99} µs  p99.9 ${p999} µs  max ${max} µs  lost ${sent - received}  errors ${errors}`,
  );
show('undisturbed', quiet);
show('relists and scrapes', busy);
figure('p99.9, disturbed : undisturbed', busy.p999 / quiet.p999, '', { atMost: 3 });
await Promise.all([server.stop(), api.stop()]);
process.exit(0);
