import assert from 'node:assert/strict';
import { get, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import { LabApi } from './api-server.ts';

describe("a lab's API server", () => {
  const api = new LabApi();
  after(() => api.close());
  let port = 0;
  const listen = (): Promise<void> =>
    api.listen(async (server: Server) => {
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
      ({ port } = server.address() as AddressInfo);
    });

  test('a client of a slow server loses its watch once the server is back, and then receives all changes', async () => {
    await listen();
    const watch = (): Promise<IncomingMessage> =>
      new Promise((done) => get({ port, path: '/api/v1/services?watch=1' }, done));
    const frozen = await watch();
    let heard = '';
    frozen.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    frozen.on('error', () => undefined);
    const ended = new Promise((done) => frozen.on('close', done));
    api.freezeWatches();
    api.put('Service', { metadata: { name: 'fresh', namespace: 'default' } });
    await listen();
    await ended;
    assert.equal(heard, '');
    const again = await watch();
    const [line] = (await again.take(1).toArray()) as [Buffer];
    assert.match(line.toString(), /"ADDED".*"fresh"/);
  });
});
