import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { FLAG, RCODE } from '../../wire/iana.ts';

const worldWith = (...rules: readonly string[]): Promise<World> =>
  makeWorld(`.:53 {\n prometheus 127.0.0.1:0\n ${rules.join('\n')}\n whoami\n}`);

/** Returns `passed`, `REFUSED`, `empty` or `silence`. */
async function fate(world: World, question: string, client = '10.0.0.1'): Promise<string> {
  const reply = await world.tryAsk(question, { client });
  if (reply === null) return 'silence';
  if (reply.additional.length > 0) return 'passed';
  assert.equal(reply.flags & FLAG.AA, 0);
  return reply.rcode === RCODE.REFUSED ? 'REFUSED' : 'empty';
}

describe('acl', () => {
  test('block, filter, drop and allow', async () => {
    for (const [action, expected] of [
      ['block', 'REFUSED'],
      ['FILTER', 'empty'],
      ['drop', 'silence'],
      ['allow', 'passed'],
    ] as const) {
      const world = await worldWith(`acl {\n ${action} type A net 10.0.0.0/8\n}`);
      assert.equal(await fate(world, 'example.org. A'), expected);
      assert.equal(await fate(world, 'example.org. AAAA'), 'passed');
      assert.equal(await fate(world, 'example.org. A', '11.0.0.1'), 'passed');
      assert.equal(await fate(world, 'example.org. A', '2001:db8::1'), 'passed');
      await world.close();
    }
  });

  test('the first matching line decides, and allow ends all rules', async () => {
    const world = await worldWith(
      'acl {\n allow net 10.1.0.0/16 2001:db8::/32\n block type A AAAA\n}',
      'acl example.org {\n drop\n}',
    );
    assert.equal(await fate(world, 'example.org. A', '10.1.2.3'), 'passed');
    assert.equal(await fate(world, 'example.org. A', '2001:db8::5'), 'passed');
    assert.equal(await fate(world, 'example.org. A', '10.2.0.1'), 'REFUSED');
    assert.equal(await fate(world, 'a.example.org. MX', '10.2.0.1'), 'silence');
    assert.equal(await fate(world, 'example.net. MX', '10.2.0.1'), 'passed');
    await world.close();
  });

  test('* matches everything, a bare address only itself, and overlapping networks their union', async () => {
    const world = await worldWith(
      'acl {\n block type * net 10.0.0.7 10.0.0.6/31 10.0.1.0/24 10.0.1.128/25 fe80::/10\n filter net *\n}',
    );
    const fates = [
      '10.0.0.5',
      '10.0.0.6',
      '10.0.0.7',
      '10.0.0.8',
      '10.0.1.0',
      '10.0.1.255',
      '10.0.2.0',
      'febf::1',
      'fec0::1',
    ];
    const found: string[] = [];
    for (const client of fates) found.push(await fate(world, 'example.org.', client));
    assert.deepEqual(found, [
      'empty',
      'REFUSED',
      'REFUSED',
      'empty',
      'REFUSED',
      'REFUSED',
      'empty',
      'REFUSED',
      'empty',
    ]);
    await world.close();
  });

  test('clients with EDNS get the reason', async () => {
    const world = await worldWith('acl {\n block type A\n filter\n}');
    assert.match(await world.dig('example.org. A', { edns: true }), /EDE: 15/);
    assert.match(await world.dig('example.org. MX', { edns: true }), /EDE: 17/);
    assert.equal((await world.ask('example.org. A')).edns, null);
    await world.close();
  });

  test('every outcome is counted', async () => {
    const world = await worldWith(
      'acl example.org {\n block type A\n filter type AAAA\n drop type MX\n}',
    );
    for (const question of [
      'a.example.org. A',
      'a.example.org. AAAA',
      'example.org. MX',
      'example.org. TXT',
      'test. A',
    ]) {
      await world.tryAsk(question);
    }
    const metrics = world.metrics();
    for (const name of ['blocked', 'filtered', 'dropped']) {
      assert.ok(
        metrics.includes(
          `coredns_acl_${name}_requests_total{server="dns://:53",view="",zone="example.org."} 1\n`,
        ),
        name,
      );
    }
    assert.ok(
      metrics.includes('coredns_acl_allowed_requests_total{server="dns://:53",view=""} 2\n'),
    );
    await world.close();
  });

  test("errors use CoreDNS's wording", async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['refuse', /unexpected token "refuse"; expect 'allow', 'block', 'filter' or 'drop'/],
      ['block 10.0.0.0/8', /unexpected token "10\.0\.0\.0\/8"; expect 'type \| net'/],
      ['block type net 10.0.0.0/8', /no token specified in "type" section/],
      ['block net', /no token specified in "net" section/],
      ['block type FOO', /unexpected token "FOO"; expect legal QTYPE/],
      ['block net 10.0.0.0/33', /illegal CIDR notation "10\.0\.0\.0\/33"/],
    ];
    for (const [line, message] of cases)
      await assert.rejects(worldWith(`acl {\n ${line}\n}`), message);
  });
});
