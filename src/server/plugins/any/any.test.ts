import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';
import { FLAG } from '../../wire/iana.ts';
import { dataOf } from '../../wire/message.ts';
import { hinfo } from '../../wire/record/table.ts';

test('any: ANY is answered with one HINFO record, and other types pass through', async () => {
  const world = await makeWorld('.:53 {\n any\n whoami\n}');
  const reply = await world.ask('Example.org. ANY');
  assert.equal(reply.answer.length, 1);
  assert.deepEqual(
    { ...dataOf(reply.answer[0]!, hinfo) },
    { cpu: 'ANY obsoleted', os: 'See RFC 8482' },
  );
  assert.deepEqual([reply.answer[0]!.name, reply.answer[0]!.ttl], ['Example.org.', 8482]);
  assert.equal(reply.flags & FLAG.AA, 0);
  assert.equal((await world.ask('example.org. A')).additional.length, 2);
  await world.close();
});

describe('any as the last plugin in the chain', () => {
  test('leaves other types unanswered', async () => {
    const world = await makeWorld('.:53 {\n any\n}');
    assert.equal((await world.ask('example.org. A')).rcode, 2);
    await world.close();
  });
});
