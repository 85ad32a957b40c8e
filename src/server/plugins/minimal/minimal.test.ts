import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin } from '../../engine/contract/plugin.ts';
import { RCODE, TYPE } from '../../wire/iana.ts';
import { parseName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { SECTION } from '../../wire/writer.ts';
import { plugins } from '../../../../test/kit/plugins.ts';

/** Replies according to the first label, always with the same bytes as a cache would. */
const replies = new Map<string, Reply>();
const stock = definePlugin({
  syntax: directive({ name: 'stock', summary: 'ready-made replies', repeat: 'last' }),
  setup(_options, { writer }) {
    const address = Uint8Array.of(192, 0, 2, 1);
    const write = (query: Query, label: string): Reply => {
      writer.reply(query, 0);
      if (label === 'answer' || label === 'alias') {
        writer.open(SECTION.answer, null, TYPE.CNAME, 30);
        writer.name(parseName('target.example.net.'));
        writer.close();
      }
      if (label === 'answer')
        writer.record(SECTION.answer, parseName('target.example.net.'), TYPE.A, 30, address);
      const authority = label === 'answer' || label === 'referral' ? TYPE.NS : TYPE.SOA;
      writer.open(SECTION.authority, parseName('example.net.'), authority, 30);
      writer.name(parseName('ns.example.net.'));
      if (authority === TYPE.SOA) {
        writer.name(parseName('.'));
        for (let i = 0; i < 5; i++) writer.u32(1);
      }
      writer.close();
      writer.record(SECTION.additional, parseName('ns.example.net.'), TYPE.A, 30, address);
      return writer.finish(label === 'nowhere' ? RCODE.NXDOMAIN : RCODE.NOERROR, 'stock');
    };
    return (query) => {
      const label = query.name.split('.')[0]!;
      const reply = replies.get(label) ?? write(query, label);
      replies.set(label, reply);
      return reply;
    };
  },
});

const worldWith = (line: string): Promise<World> =>
  makeWorld(`.:53 {\n ${line}\n stock\n}`, { plugins: [...plugins, stock] });

const counts = async (world: World, question: string): Promise<readonly number[]> => {
  const { answer, authority, additional } = await world.ask(question);
  return [answer.length, authority.length, additional.length];
};

describe('minimal', () => {
  test('a positive answer retains only the answer section', async () => {
    const world = await worldWith('minimal');
    assert.deepEqual(await counts(world, 'answer.example.org. A'), [2, 0, 0]);
    const { answer } = await world.ask('answer.example.org. A');
    assert.deepEqual(
      answer.map(({ name }) => name),
      ['answer.example.org.', 'target.example.net.'],
    );
    await world.close();
  });

  test('denials, even after an alias, and delegations stay complete', async () => {
    const world = await worldWith('minimal');
    assert.deepEqual(await counts(world, 'nowhere.example.org. A'), [0, 1, 1]);
    assert.deepEqual(await counts(world, 'nodata.example.org. A'), [0, 1, 1]);
    assert.deepEqual(await counts(world, 'referral.example.org. A'), [0, 1, 1]);
    assert.deepEqual(await counts(world, 'alias.example.org. A'), [1, 1, 1]);
    await world.close();
  });

  test('the original reply is unchanged', async () => {
    const cut = await worldWith('minimal');
    await cut.ask('answer.example.org. A');
    await cut.close();
    const whole = await worldWith('errors');
    assert.deepEqual(await counts(whole, 'answer.example.org. A'), [2, 1, 1]);
    await whole.close();
  });

  test('a result code without a message passes unchanged', async () => {
    const world = await makeWorld('.:53 {\n minimal\n any\n}');
    assert.equal((await world.ask('example.org. A')).rcode, RCODE.SERVFAIL);
    await world.close();
  });
});
