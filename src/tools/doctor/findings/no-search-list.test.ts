import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pods } from '../../../../test/kit/story-parts.ts';
import { examine, healthy, play, type Fate, type Passing } from '../../../../test/kit/story.ts';
import type { Finding } from './finding.ts';

const denyShort = (passing: Passing): Fate =>
  passing.name.split('.').length === 2 ? { rcode: 3, tookMs: 1 } : healthy(passing);

/** A pod looks up short names, and another pod has a search list. @param lookups of the first pod */
async function found(resolvConf: string, lookups: number): Promise<Finding | undefined> {
  const packets = await play(
    [
      ...pods('glibc', 1, { names: ['mongodb', 'search'], lookups, resolvConf }),
      ...pods('glibc', 1, { from: 30, names: ['www.example.com'], lookups: 30 }),
    ],
    denyShort,
  );
  const { findings } = await examine(packets);
  return findings.find(({ code }) => code === 'ND2017');
}

test('a pod that never completes short names has no search list', async () => {
  const finding = await found('nameserver 10.96.0.10\n', 20);
  assert.match(finding?.title ?? '', /has no search list/);
  assert.match(finding!.seen.join(' '), /20 lookups from 10\.244\.1\.1 .*: mongodb\., search\./);
});

test('a pod with a search list, or with few such lookups, is not reported', async () => {
  const search = 'nameserver 10.96.0.10\nsearch shop.svc.cluster.local\noptions ndots:5\n';
  assert.equal(await found(search, 20), undefined);
  assert.equal(await found('nameserver 10.96.0.10\n', 4), undefined);
});
