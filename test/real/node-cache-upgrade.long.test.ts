/** Node cache instances that take over from one another. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { printed } from '../kit/child.ts';
import { makeNodeWorld, noNodeWorld, SERVICE, WHO, type NodeWorld } from '../kit/node-world.ts';
import { missing } from '../kit/dig.ts';
import { upgradeUnderLoad } from '../kit/node-upgrade.ts';

const reason = noNodeWorld() ?? missing('dnsperf');
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('an upgrade of the node cache', { skip: reason ?? false }, () => {
  let world: NodeWorld;
  before(async () => {
    world = await makeNodeWorld();
  });
  after(() => world.close());

  test('with nft no query is lost either', () => upgradeUnderLoad(world, 'nftables', 8));

  test('a next one that cannot serve leaves the one before in place', async () => {
    const first = await world.cache();
    while (world.who(SERVICE) !== WHO.node) await wait(50);
    writeFileSync(join(world.directory, 'broken'), '.:53 {\n nosuch\n}\n');
    const next = await world.cache(
      ['-basecorefile', join(world.directory, 'broken'), '-conf', join(world.directory, 'B')],
      false,
    );
    assert.equal(await next.exitCode, 1, next.output());
    await wait(1500);
    assert.equal(world.who(SERVICE), WHO.node);
    const third = await world.cache(['-linger', '5m']);
    assert.equal(await first.exitCode, 0);
    const fourth = await world.cache();
    await printed(third, /Another instance has taken over/);
    assert.equal(world.who(SERVICE), WHO.node);
    third.signal('SIGTERM');
    assert.equal(await third.exitCode, 0);
    assert.equal(world.who(SERVICE), WHO.node);
    fourth.signal('SIGTERM');
    assert.equal(await fourth.exitCode, 0);
  });
});
