import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import * as any from '../../../test/fuzz/arbitraries.ts';
import { lower } from '../../../test/fuzz/spelling.ts';
import { ttlOffsets } from '../../../test/kit/ttl-offsets.ts';
import { readMessage, writeMessage, type Message } from './message.ts';
import { foldName, parseName, printName } from './name.ts';
import { ReadError } from './reader.ts';
import { withQuestion } from './requestion.ts';
import type { Reply } from './reply.ts';
import { fromUpstream } from './upstream.ts';
import { makeQueryMessage, QueryMessage } from './query-message.ts';

const folded = (text: string): string => printName(foldName(parseName(text)));

describe('laws of replies under a different question', () => {
  test('a reply under a different question keeps every name, with the old question as alias or owner', () => {
    fc.assert(
      fc.property(any.reply, any.wireName, fc.nat({ max: 1000 }), (message, name, ttl) => {
        const reply = taken(writeMessage(message));
        const query = makeQueryMessage(new QueryMessage(), name, message.question[0]!.type);
        const old = message.question[0]!.name;
        const question = [{ ...message.question[0]!, name: query.name, class: 1 }];
        const base = { ...message, rcode: message.rcode & 15, edns: null, question };

        const stays = read(withQuestion(reply, query, 'stay'));
        assert.deepEqual(lower(stays), lower(base));

        const alias = { name: query.name, type: 5, class: 1, ttl, data: { target: old } };
        const aliased = read(withQuestion(reply, query, 'stay', ttl));
        assert.deepEqual(lower(aliased), lower({ ...base, answer: [alias, ...base.answer] }));

        const follows = read(withQuestion(reply, query, 'follow'));
        const own = (text: string): string => (folded(text) === folded(old) ? query.name : text);
        assert.deepEqual(lower(follows), lower(renamed(base, own)));
      }),
      { numRuns: 300 },
    );
  });

  test('a reply under a different question is sent with the TTLs it would have had', () => {
    fc.assert(
      fc.property(any.reply, any.wireName, fc.nat({ max: 10_000 }), (message, name, ttl) => {
        const whole = taken(writeMessage(message));
        const ttlAt = ttlOffsets(whole.bytes, whole.start, whole.end);
        const reply = whole.with({ ttlAt, ttl });
        const { answer } = read(
          withQuestion(reply, makeQueryMessage(new QueryMessage(), name, 1), 'stay', 7),
        );
        assert.deepEqual(
          answer.map((one) => one.ttl),
          [7, ...message.answer.map(() => ttl)],
        );
      }),
    );
  });
});

function taken(bytes: Uint8Array): Reply {
  const reply = fromUpstream(bytes);
  if (reply instanceof ReadError) throw reply;
  return reply;
}

function read(reply: Reply): Message {
  return readMessage(reply.bytes, reply.start, reply.end);
}

function renamed(message: Message, own: (name: string) => string): Message {
  const fix = <T extends { name: string }>(one: T): T => ({ ...one, name: own(one.name) });
  return {
    ...message,
    answer: message.answer.map(fix),
    authority: message.authority.map(fix),
    additional: message.additional.map(fix),
  };
}
