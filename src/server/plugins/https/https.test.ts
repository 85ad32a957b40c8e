import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';

async function connections(directives: string): Promise<Record<string, number>> {
  const world = await makeWorld(`. https://. {\n${directives}\n whoami\n}`);
  const { endpoints } = world.server;
  await world.close();
  return Object.fromEntries(endpoints.map(({ server, limits }) => [server, limits.connections]));
}

describe('https', () => {
  test('max_connections limits only HTTPS and takes precedence over limits', async () => {
    assert.deepEqual(await connections(''), { 'dns://:53': 4096, 'https://:443': 1024 });
    assert.deepEqual(await connections('https {\n max_connections 20\n}'), {
      'dns://:53': 4096,
      'https://:443': 20,
    });
    assert.deepEqual(
      await connections('limits {\n connections 9\n}\nhttps {\n max_connections 20\n}'),
      { 'dns://:53': 9, 'https://:443': 20 },
    );
  });

  test('0 means no limit', async () => {
    const { 'https://:443': limit } = await connections('https {\n max_connections 0\n}');
    assert.equal(limit, Infinity);
  });

  test("errors use CoreDNS's wording", async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['https 5', /[Ww]rong argument count/],
      ['https {\n max_connections -1\n}', /max_connections must be a non-negative integer: -1/],
      ['https {\n max_connections many\n}', /invalid max_connections value 'many': strconv\.Atoi/],
      [
        'https {\n max_connections 1\n max_connections 2\n}',
        /max_connections already defined for this server block/,
      ],
      ['https {\n max_streams 1\n}', /unknown property 'max_streams'/],
    ];
    for (const [directives, message] of cases)
      await assert.rejects(connections(directives), message);
  });
});
