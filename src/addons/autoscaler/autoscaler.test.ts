import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../../server/base/clock.ts';
import { makeLog } from '../../server/base/log.ts';
import { seededRandom } from '../../server/base/random.ts';
import { Autoscaler } from './autoscaler.ts';

test('a missing target is reported, and the others are still scaled', async () => {
  const scaled: unknown[] = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://here');
    const answer = (object: object, status = 200): void =>
      void response.writeHead(status).end(JSON.stringify(object));
    if (searchParams.has('watch')) return response.flushHeaders();
    if (pathname === '/api/v1/nodes')
      return answer({ metadata: { resourceVersion: '1' }, items: [{ metadata: { name: 'a' } }] });
    if (pathname.endsWith('/configmaps/sizes'))
      return answer({ data: { linear: '{"nodesPerReplica": 1, "min": 3}' } });
    if (!pathname.endsWith('/dns/scale')) return answer({ kind: 'Status' }, 404);
    if (request.method === 'GET') return answer({ spec: { replicas: 1 } });
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      scaled.push(JSON.parse(body));
      answer({});
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const lines: string[] = [];
  const stop = new AbortController();
  const running = new Autoscaler({
    connection: {
      url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
      access: () => ({ headers: {}, tls: null }),
      refused: () => undefined,
    },
    version: '1',
    namespace: 'kube-system',
    configMap: 'sizes',
    defaults: null,
    targets: [
      { kind: 'deployment', name: 'gone' },
      { kind: 'deployment', name: 'dns' },
    ],
    nodeLabels: '',
    everyMs: 60_000,
    clock: systemClock,
    random: seededRandom(1),
    log: makeLog((line) => lines.push(line)),
  }).run(stop.signal);
  for (let tries = 0; tries < 100 && scaled.length === 0; tries++) await pause(50);
  stop.abort();
  await running;
  server.closeAllConnections();
  server.close();
  assert.deepEqual(scaled, [{ spec: { replicas: 3 } }]);
  assert.match(lines.join('\n'), /get deployments\/scale gone/);
});
