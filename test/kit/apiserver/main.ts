/**
 * The fake API server as a program, for kubectl, benchmarks and memory measurements:
 *
 * node test/kit/apiserver/main.ts --port 8001 --services 10000 --endpoints 100000 --pods 100000 --churn 500
 *
 * It prints `listening URL` once it has all objects. `compact` and `drop` on standard input discard the history and cut
 * all watches, so every client lists again.
 */
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { populate, slice } from './populate.ts';
import { ApiServer } from './server.ts';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    minor: { type: 'string', default: '33' },
    services: { type: 'string', default: '0' },
    endpoints: { type: 'string', default: '0' },
    pods: { type: 'string', default: '0' },
    padding: { type: 'string', default: '1000' },
    churn: { type: 'string', default: '0' },
    'no-streaming': { type: 'boolean', default: false },
    pages: { type: 'boolean', default: false },
  },
});

const server = await ApiServer.start({
  port: Number(values.port),
  minor: Number(values.minor),
  pagesFromCache: values.pages,
  ...(values['no-streaming'] ? { streamingLists: false } : {}),
});
const services = Number(values.services);
populate(server, {
  services,
  endpoints: Number(values.endpoints),
  pods: Number(values.pods),
  padding: Number(values.padding),
});
process.stdout.write(`listening ${server.url}\n`);

const perSecond = Number(values.churn);
if (perSecond > 0) {
  let turn = 0;
  setInterval(() => {
    const index = turn++ % Math.max(1, services);
    const object = slice(index, turn % 60_000, 1 + (turn % 5));
    object.metadata.annotations = {
      'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString(),
    };
    server.put('endpointslices', object);
  }, 1000 / perSecond);
}

createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'compact') {
    server.compact();
    server.dropWatches();
  } else if (line === 'drop') server.dropWatches();
  else if (line === 'seen') process.stdout.write(`seen ${server.seen.length}\n`);
});
