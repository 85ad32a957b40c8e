import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { FLAG, RCODE } from '../../wire/iana.ts';

const makeLocal = (properties = ''): Promise<World> =>
  makeWorld(`.:53 {\n local ${properties}\n whoami\n}`);

/**
 * Formats records as `owner TYPE data`, with authority records in parentheses, after the result code unless that is
 * NOERROR.
 */
async function brief(world: World, question: string): Promise<string> {
  const reply = await world.ask(question);
  if (reply.additional.length > 0) return 'next';
  assert.equal(reply.flags & FLAG.AA, 0);
  assert.ok([...reply.answer, ...reply.authority].every(({ ttl }) => ttl === 604_800));
  const text = await world.dig(question);
  const records = [...text.matchAll(/^(\S+)\s+604800\s+IN\s+(\S+)\s+(.*)$/gm)].map(
    ([, owner, type, data]) => `${owner} ${type} ${data}`,
  );
  const all = records
    .map((record, index) => (index < reply.answer.length ? record : `(${record})`))
    .join(' ');
  return reply.rcode === RCODE.NOERROR ? all : `${reply.rcode} ${all}`;
}

const soa = 'SOA localhost. root.localhost. 1 0 0 0 604800';

describe('local', () => {
  test('localhost, names below it and names starting with it have the loopback addresses', async () => {
    const world = await makeLocal();
    assert.equal(await brief(world, 'localhost. A'), 'localhost. A 127.0.0.1');
    assert.equal(await brief(world, 'LocalHost. AAAA'), 'LocalHost. AAAA ::1');
    assert.equal(
      await brief(world, 'kube-health.localhost. A'),
      'kube-health.localhost. A 127.0.0.1',
    );
    assert.equal(
      await brief(world, 'localhost.example.org. AAAA'),
      'localhost.example.org. AAAA ::1',
    );
    // Each was queried twice, once for its bytes and once for its text.
    assert.match(world.metrics(), /^coredns_local_localhost_requests_total 4$/m);
    await world.close();
  });

  test('other types of these names have no data, but the names exist', async () => {
    const world = await makeLocal();
    assert.equal(await brief(world, 'a.localhost. MX'), `(a.localhost. ${soa})`);
    assert.equal(await brief(world, 'a.localhost. SOA'), `(a.localhost. ${soa})`);
    assert.equal(await brief(world, 'localhost. MX'), `(localhost. ${soa})`);
    assert.equal(await brief(world, 'localhost. SOA'), `localhost. ${soa}`);
    assert.equal(await brief(world, 'localhost. NS'), 'localhost. NS localhost.');
    await world.close();
  });

  test('in the reverse zones only 127.0.0.1 has a name', async () => {
    const world = await makeLocal();
    assert.equal(
      await brief(world, '1.0.0.127.in-addr.arpa. PTR'),
      '1.0.0.127.in-addr.arpa. PTR localhost.',
    );
    assert.equal(await brief(world, '1.0.0.127.in-addr.arpa. A'), `(127.in-addr.arpa. ${soa})`);
    assert.equal(await brief(world, '2.0.0.127.in-addr.arpa. PTR'), `3 (127.in-addr.arpa. ${soa})`);
    assert.equal(await brief(world, '1.2.3.0.in-addr.arpa. PTR'), `3 (0.in-addr.arpa. ${soa})`);
    assert.equal(await brief(world, '255.in-addr.arpa. SOA'), `255.in-addr.arpa. ${soa}`);
    assert.equal(await brief(world, '0.in-addr.arpa. A'), `(0.in-addr.arpa. ${soa})`);
    assert.equal(await brief(world, '27.in-addr.arpa. NS'), 'next');
    await world.close();
  });

  test('localhost_prefix off does not affect localhost.example.org', async () => {
    const world = await makeLocal('{\n localhost_prefix off\n }');
    assert.equal(await brief(world, 'localhost.example.org. A'), 'next');
    assert.equal(await brief(world, 'a.localhost. A'), 'a.localhost. A 127.0.0.1');
    assert.equal(await brief(world, 'notlocalhost. A'), 'next');
    await world.close();
    await assert.rejects(
      makeLocal('{\n localhost_prefix no\n }'),
      /localhost_prefix expects 'on' or 'off', got "no"/,
    );
  });
});
