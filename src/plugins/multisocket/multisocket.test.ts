import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../test/kit/world.ts';

const sockets = async (directive: string): Promise<number> => {
  const world = await makeWorld(`.:53 {\n ${directive}\n whoami\n}`);
  const found = world.server.endpoints[0]!.sockets;
  await world.close();
  return found;
};

describe('multisocket', () => {
  test('as many sockets as said, or as there are processors', async () => {
    assert.equal(await sockets('multisocket 4'), 4);
    assert.equal(await sockets('multisocket'), availableParallelism());
    assert.equal(await sockets('errors'), 1);
  });

  test("mistakes are told in CoreDNS's words", async () => {
    await assert.rejects(sockets('multisocket 0'), /num sockets can not be zero or negative: 0/);
    await assert.rejects(sockets('multisocket 1025'), /num sockets exceeds maximum \(1024\): 1025/);
    await assert.rejects(
      sockets('multisocket some'),
      /invalid num sockets: strconv\.Atoi: parsing "some"/,
    );
  });
});
