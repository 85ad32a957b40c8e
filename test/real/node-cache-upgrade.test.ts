/** One node cache instance takes over from another under load. */
import { after, before, describe, test } from 'node:test';
import { missing } from '../kit/dig.ts';
import { upgradeUnderLoad } from '../kit/node-upgrade.ts';
import { makeNodeWorld, noNodeWorld, type NodeWorld } from '../kit/node-world.ts';

const reason = noNodeWorld() ?? missing('dnsperf');

describe('an upgrade of the node cache', { skip: reason ?? false }, () => {
  let world: NodeWorld;
  before(async () => {
    world = await makeNodeWorld();
  });
  after(() => world.close());

  test('of 5 000 queries a second none is lost, and the new instance begins with the cache of the old one', () =>
    upgradeUnderLoad(world, 'iptables', 6));
});
