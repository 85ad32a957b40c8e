import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { makeWorld } from '../kit/world.ts';

const isLoaded = (): boolean =>
  Object.keys(createRequire(import.meta.url).cache).some((path) => path.includes('/re2js/'));

test('a Corefile without patterns does not load their engine', async () => {
  const without = await makeWorld(
    ".:53 {\n errors\n view v {\n expr type() == 'A'\n }\n rewrite name a.test b.test\n template ANY ANY c.test {\n rcode NXDOMAIN\n }\n whoami\n}",
  );
  await without.ask('a.test. A');
  await without.close();
  assert.equal(isLoaded(), false);
  const one = await makeWorld('.:53 {\n rewrite name regex ^a b.test\n whoami\n}');
  await one.close();
  assert.equal(isLoaded(), true);
});
