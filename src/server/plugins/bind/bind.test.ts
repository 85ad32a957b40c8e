import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { problemsIn } from '../../base/problem.ts';
import { makeWorld } from '../../../../test/kit/world.ts';

const servers = async (corefile: string): Promise<readonly string[]> => {
  const world = await makeWorld(corefile);
  const found = world.server.endpoints.map(({ server }) => server);
  await world.close();
  return found;
};

describe('bind', () => {
  test('several lines and addresses are combined', async () => {
    assert.deepEqual(await servers('.:53 {\n bind 127.0.0.1 ::1\n bind 127.0.0.2\n}'), [
      'dns://127.0.0.1:53',
      'dns://[::1]:53',
      'dns://127.0.0.2:53',
    ]);
  });

  test('an interface means its addresses, minus the excluded ones', async () => {
    const all = await servers('.:53 {\n bind lo\n}');
    assert.ok(all.includes('dns://127.0.0.1:53'));
    assert.deepEqual(await servers('.:53 {\n bind lo 127.0.0.9 {\n except lo\n }\n}'), [
      'dns://127.0.0.9:53',
    ]);
  });

  test('different blocks can serve the zone on different addresses', async () => {
    const world = await makeWorld(
      '.:53 {\n bind 127.0.0.1\n whoami\n}\n.:53 {\n bind 127.0.0.2\n any\n}',
    );
    assert.equal((await world.ask('a. A', { server: 'dns://127.0.0.1:53' })).rcode, 0);
    assert.equal((await world.ask('a. A', { server: 'dns://127.0.0.2:53' })).rcode, 2);
    await world.close();
  });

  test('words that are neither an address nor an interface are rejected', async () => {
    await assert.rejects(
      servers('.:53 {\n bind nosuch0\n}'),
      /not a valid IP address or interface name: .nosuch0/,
    );
    await assert.rejects(servers('.:53 {\n bind 127.0.0.1 nosuch0\n}'), (error) => {
      const [problem] = problemsIn(error) ?? [];
      assert.deepEqual([problem?.place?.line, problem?.place?.column], [2, 17]);
      return true;
    });
    await assert.rejects(
      servers('.:53 {\n bind\n}'),
      /at least one address or interface name is required/,
    );
    await assert.rejects(servers('.:53 {\n bind lo {\n except\n }\n}'), /Wrong argument count/);
  });
});
