import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';

const limits = async (directives: string): Promise<readonly number[]> => {
  const world = await makeWorld(`.:53 {\n${directives}\n}`);
  const { readTimeoutMs, writeTimeoutMs, idleTimeoutMs, maxQueries } =
    world.server.endpoints[0]!.limits;
  await world.close();
  return [readTimeoutMs, writeTimeoutMs, idleTimeoutMs, maxQueries];
};

describe('timeouts', () => {
  test('the defaults are 3s, 5s, 10s and unlimited queries', async () => {
    assert.deepEqual(await limits('whoami'), [3000, 5000, 10_000, -1]);
  });

  test('each can be set, a bare number is in seconds, and lines add up', async () => {
    assert.deepEqual(
      await limits('timeouts {\n read 4s\n idle 20\n}\ntimeouts {\n maxtcpqueries 128\n}'),
      [4000, 5000, 20_000, 128],
    );
    assert.deepEqual(
      await limits('timeouts {\n write 1m\n maxtcpqueries -1\n}'),
      [3000, 60_000, 10_000, -1],
    );
  });

  test("errors use CoreDNS's wording", async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['read 500ms', /timeout provided '500ms' needs to be between 1 second and 24 hours/],
      ['idle 25h', /timeout provided '25h' needs to be between 1 second and 24 hours/],
      ['write soon', /failed to parse duration 'soon'/],
      [
        'maxtcpqueries 0',
        /maxtcpqueries provided '0' needs to be -1 \(unlimited\) or a positive integer/,
      ],
      ['maxtcpqueries many', /invalid value for maxtcpqueries 'many': strconv\.Atoi/],
      ['', /timeouts block with no timeouts specified/],
    ];
    for (const [line, message] of cases)
      await assert.rejects(limits(`timeouts {\n${line}\n}`), message);
  });
});
