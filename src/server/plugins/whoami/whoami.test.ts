import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';
import { FLAG, TYPE } from '../../wire/iana.ts';
import { dataOf } from '../../wire/message.ts';
import { a, aaaa, srv } from '../../wire/record/table.ts';

describe('whoami', () => {
  test('address and port are in the additional section, for all types', async () => {
    const world = await makeWorld('.:53 {\n whoami\n}');
    for (const type of ['A', 'TXT', 'ANY']) {
      const reply = await world.ask(`Who.example.org. ${type}`, { client: '192.0.2.7' });
      assert.deepEqual([reply.answer, reply.authority], [[], []]);
      assert.equal(reply.flags & FLAG.AA, FLAG.AA);
      const [address, port] = reply.additional;
      assert.equal(address!.name, 'Who.example.org.');
      assert.equal(dataOf(address!, a)?.address, '192.0.2.7');
      assert.equal(port!.name, '_udp.Who.example.org.');
      assert.deepEqual(
        { ...dataOf(port!, srv) },
        { priority: 0, weight: 0, port: 40_000, target: '.' },
      );
      assert.deepEqual([address!.ttl, port!.ttl], [0, 0]);
    }
    await world.close();
  });

  test('TCP and IPv6 are reflected in the records', async () => {
    const world = await makeWorld('.:53 {\n whoami\n}');
    const { additional } = await world.ask('example.org.', { proto: 'tcp', client: '2001:db8::7' });
    assert.equal(additional[0]!.type, TYPE.AAAA);
    assert.equal(dataOf(additional[0]!, aaaa)?.address, '2001:db8::7');
    assert.equal(additional[1]!.name, '_tcp.example.org.');
    await world.close();
  });

  test('the root works too, and a name too long for another label has no SRV', async () => {
    const world = await makeWorld('.:53 {\n whoami\n}');
    assert.equal((await world.ask('.')).additional[1]!.name, '_udp.');
    const long = `${`${'a'.repeat(62)}.`.repeat(4)}`;
    assert.deepEqual(
      (await world.ask(long)).additional.map(({ type }) => type),
      [TYPE.A],
    );
    await world.close();
  });
});
