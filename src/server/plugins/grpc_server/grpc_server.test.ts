import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';
import type { ListenerLimits } from '../../transport/limits/limits.ts';

async function limitsOf(directives: string): Promise<Record<string, ListenerLimits>> {
  const world = await makeWorld(`. grpc://. {\n${directives}\n whoami\n}`);
  const { endpoints } = world.server;
  await world.close();
  return Object.fromEntries(endpoints.map(({ server, limits }) => [server, limits]));
}

describe('grpc_server', () => {
  test('limits only gRPC and takes precedence over limits', async () => {
    const { 'grpc://:443': usual } = await limitsOf('');
    assert.deepEqual([usual!.streams, usual!.connections], [250, 1024]);
    const { 'grpc://:443': own, 'dns://:53': other } = await limitsOf(
      'limits {\n connections 9\n streams 8\n}\ngrpc_server {\n max_streams 5\n max_connections 6\n}',
    );
    assert.deepEqual([own!.streams, own!.connections], [5, 6]);
    assert.deepEqual([other!.streams, other!.connections], [8, 9]);
  });

  test('0 means no limit', async () => {
    const { 'grpc://:443': own } = await limitsOf(
      'grpc_server {\n max_streams 0\n max_connections 0\n}',
    );
    assert.deepEqual([own!.streams, own!.connections], [0x7fff_ffff, Infinity]);
  });

  test("errors use CoreDNS's wording", async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['grpc_server 5', /[Ww]rong argument count/],
      ['grpc_server {\n max_streams\n}', /[Ww]rong argument count/],
      ['grpc_server {\n max_streams abc\n}', /invalid max_streams value 'abc'/],
      ['grpc_server {\n max_connections -1\n}', /must be a non-negative integer: -1/],
      [
        'grpc_server {\n max_streams 1\n max_streams 2\n}',
        /max_streams already defined for this server block/,
      ],
      ['grpc_server {\n unknown_option 1\n}', /unknown property 'unknown_option'/],
    ];
    for (const [directives, message] of cases) await assert.rejects(limitsOf(directives), message);
  });
});
