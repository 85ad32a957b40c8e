import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FLAG, TYPE } from '../../wire/iana.ts';
import { parseName } from '../../wire/name.ts';
import { makeQuery, type Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { MessageWriter, SECTION } from '../../wire/writer.ts';
import { SignedReplies } from './signed-replies.ts';

const writer = new MessageWriter();

function query(name: string, type: number = TYPE.A): Query {
  const made = makeQuery(parseName(name), type);
  // Forces all names into the same table slot.
  made.hash = 7;
  return made;
}

function reply(to: Query, last: number, ttl = 60, rcode = 0): Reply {
  writer.reply(to, FLAG.AA);
  // Because of the odd length, the hash ignores the last byte.
  writer.record(SECTION.answer, null, TYPE.NULL, ttl, Uint8Array.of(1, 2, 3, 4, last));
  return writer.finish(rcode, 'file');
}

function kept(replies: SignedReplies, to: Query, unsigned: Reply): Reply {
  const signed = reply(to, 99);
  replies.put(to, unsigned, { reply: signed, sets: 1, from: 100, until: 200 });
  return signed;
}

const bytes = ({ bytes: all, start, end }: Reply): Uint8Array => all.slice(start, end);

describe('signed replies', () => {
  test('are found in any spelling of the question while their signatures are valid', () => {
    const replies = new SignedReplies(10, 100_000);
    const asked = query('a.example.');
    const signed = kept(replies, asked, reply(asked, 1));
    const again = query('A.exAMPle.');
    assert.deepEqual(bytes(replies.find(again, reply(again, 1), 150)!.reply), bytes(signed));
    for (const now of [99, 201]) assert.equal(replies.find(again, reply(again, 1), now), null);
  });

  test('differ by name, type, records and flags', () => {
    const replies = new SignedReplies(10, 100_000);
    const asked = query('a.example.');
    kept(replies, asked, reply(asked, 1));
    const others: readonly (readonly [Query, number, number, number])[] = [
      [query('b.example.'), 1, 60, 0],
      [query('a.example.', TYPE.AAAA), 1, 60, 0],
      [asked, 2, 60, 0],
      [asked, 1, 61, 0],
      [asked, 1, 60, 3],
    ];
    for (const [other, last, ttl, rcode] of others)
      assert.equal(replies.find(other, reply(other, last, ttl, rcode), 150), null);
    assert.ok(replies.find(asked, reply(asked, 1), 150) !== null);
  });

  test('stay within the limits on count and bytes, and recently used ones are retained', () => {
    for (const [most, memory] of [
      [3, 1_000_000],
      [100, 1600],
    ] as const) {
      const replies = new SignedReplies(most, memory);
      const popular = makeQuery(parseName('popular.'), TYPE.A);
      kept(replies, popular, reply(popular, 1));
      for (let i = 0; i < 20; i++) {
        const asked = makeQuery(parseName(`n${i}.`), TYPE.A);
        kept(replies, asked, reply(asked, 1));
        assert.ok(replies.bytes <= Math.min(memory, most * 600));
        assert.ok(replies.find(popular, reply(popular, 1), 150) !== null, `${most} ${i}`);
      }
    }
  });

  test('are not stored if their TTLs count down', () => {
    const replies = new SignedReplies(10, 100_000);
    const asked = query('a.example.');
    const counting = reply(asked, 1).with({ ttlAt: Uint16Array.of(12), ttl: 30 });
    kept(replies, asked, counting);
    assert.equal(replies.bytes, 0);
  });
});
