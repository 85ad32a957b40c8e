import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { CLASS } from '../../wire/iana.ts';
import { RCODE } from '../../wire/iana.ts';

const texts = async (world: World, name: string): Promise<readonly string[]> => {
  const { answer } = await world.ask(`${name} TXT`, { qclass: CLASS.CH });
  assert.ok(answer.every((record) => record.class === CLASS.CH && record.ttl === 0));
  return (await world.dig(`${name} TXT`, { qclass: CLASS.CH })).match(/(?<=TXT\t").*(?=")/g) ?? [];
};

describe('chaos', () => {
  test('version, authors and host name', async () => {
    const world = await makeWorld('.:53 {\n chaos V-1.0 "Ada Lovelace" Bob Bob\n}');
    assert.deepEqual(await texts(world, 'version.bind.'), ['V-1.0']);
    assert.deepEqual(await texts(world, 'VERSION.server.'), ['V-1.0']);
    assert.deepEqual([...(await texts(world, 'authors.bind.'))].toSorted(), [
      'Ada Lovelace',
      'Bob',
    ]);
    assert.deepEqual(await texts(world, 'hostname.bind.'), [hostname()]);
    assert.deepEqual(await texts(world, 'id.server.'), [hostname()]);
    await world.close();
  });

  test('the default version is ours, and long texts are truncated', async () => {
    const own = await makeWorld('.:53 {\n chaos\n}');
    assert.match((await texts(own, 'version.bind.'))[0]!, /^ndots-\d+\.\d+\.\d+/);
    await own.close();
    const long = await makeWorld(`.:53 {\n chaos ${'x'.repeat(300)}\n}`);
    assert.equal((await texts(long, 'version.bind.'))[0], 'x'.repeat(255));
    await long.close();
  });

  test('other names, types and classes go to the next plugin, and class CH is allowed because of chaos', async () => {
    const world = await makeWorld('.:53 {\n chaos\n whoami\n}');
    assert.equal((await world.ask('other.bind. TXT', { qclass: CLASS.CH })).additional.length, 2);
    assert.equal((await world.ask('version.bind. A', { qclass: CLASS.CH })).additional.length, 2);
    assert.equal((await world.ask('version.bind. TXT')).additional.length, 2);
    await world.close();
    const without = await makeWorld('.:53 {\n whoami\n}');
    assert.equal(
      (await without.ask('version.bind. TXT', { qclass: CLASS.CH })).rcode,
      RCODE.REFUSED,
    );
    await without.close();
  });
});
