import assert from 'node:assert/strict';
import { test } from 'node:test';
import { healthy, play } from '../../../test/kit/story.ts';
import { watched } from '../../../test/kit/watched.ts';
import type { RingLookup } from './lookup-ring.ts';
import { WastePlans } from './waste-plans.ts';

const lookups = Array.from({ length: 12 }, (_, at) => ({
  atMs: at * 900,
  name: 'api.example.com',
}));
const packets = await play(
  ['10.244.1.1', '10.244.1.2'].map((address, at) => ({
    ...{ address, resolver: 'glibc' },
    lookups: at === 0 ? [...lookups, ...lookups] : lookups,
  })),
  healthy,
);

test('a workload whose plan fails is reported, and keeps no other from its plan', async () => {
  const model = watched(packets);
  const broken = { search: null } as unknown as RingLookup['queries'];
  const plans = new WastePlans();
  const { counts, parties, resolvers, nowMs } = model;
  const ring = {
    *newest(fromMs: number): Iterable<RingLookup> {
      for (const lookup of model.ring.newest(fromMs))
        yield lookup.client === '10.244.1.1' ? { ...lookup, queries: broken } : lookup;
    },
  };
  plans.update({ counts, parties, resolvers, ring }, -Infinity, nowMs);
  await plans.settled;
  assert.equal(plans.of('10.244.1.1'), null);
  assert.equal(plans.of('10.244.1.2')?.ndots, 2);
  assert.match(plans.failed, /is not a function/);
});
