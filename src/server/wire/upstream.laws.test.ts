import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import * as any from '../../../test/fuzz/arbitraries.ts';
import { LooseWriter } from '../../../test/fuzz/loose-writer.ts';
import { lower } from '../../../test/fuzz/spelling.ts';
import { OPTION } from './iana.ts';
import { readMessage, writeMessage, type Message } from './message.ts';
import { foldName } from './name.ts';
import { ReadError } from './reader.ts';
import { expandName, Records } from './records.ts';
import { Reply } from './reply.ts';
import { fromUpstream } from './upstream.ts';

const hopByHop: readonly number[] = [OPTION.COOKIE, OPTION.KEEPALIVE, OPTION.PADDING];

describe('laws of replies from upstreams', () => {
  test("converting a reply preserves everything except OPT and the question's spelling", () => {
    fc.assert(
      fc.property(any.reply, (message) => {
        const reply = taken(writeMessage(message));
        assert.deepEqual(
          lower(read(reply)),
          lower({ ...message, rcode: message.rcode & 15, edns: null }),
        );
        assert.equal(reply.rcode, message.rcode);
        const passed = (message.edns?.options ?? []).filter(({ code }) => !hopByHop.includes(code));
        const size = passed.reduce((sum, { data }) => sum + 4 + data.length, 0);
        assert.equal(reply.options?.length ?? 0, size);
      }),
      { numRuns: 400 },
    );
  });

  test('every owner equal to the question is a pointer to it', () => {
    fc.assert(
      fc.property(any.reply, (message) => {
        const reply = taken(writeMessage(message));
        const records = new Records();
        const asked = foldName(expandName(reply.bytes, reply.start, reply.start + 12));
        for (records.of(reply); records.next();) {
          if (asked.length === 1 || !isDeepStrictEqual(foldName(records.owner), asked)) continue;
          assert.deepEqual(
            [reply.bytes[records.ownerAt], reply.bytes[records.ownerAt + 1]],
            [0xc0, 12],
          );
        }
      }),
    );
  });

  test('a message without compression is converted like a compressed one', () => {
    fc.assert(
      fc.property(any.reply, (message) => {
        const loose = taken(writeMessage(message, new LooseWriter()));
        assert.deepEqual(
          lower(read(loose)),
          lower({ ...message, rcode: message.rcode & 15, edns: null }),
        );
      }),
      { numRuns: 300 },
    );
  });

  test('any reply with one question is converted, and any other bytes give a ReadError', () => {
    const damage = fc.array(fc.tuple(fc.nat(), any.byte), { maxLength: 4 });
    fc.assert(
      fc.property(any.reply, damage, (message, changes) => {
        const bytes = writeMessage(message);
        for (const [at, value] of changes) bytes[at % bytes.length] = value;
        const readable = isReplyWithQuestion(bytes);
        const reply = fromUpstream(bytes);
        if (readable) assert.ok(reply instanceof Reply);
        else assert.ok(reply instanceof Reply || reply instanceof ReadError);
      }),
      { numRuns: 500 },
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

function readable(bytes: Uint8Array): Message | null {
  try {
    return readMessage(bytes);
  } catch (error) {
    if (error instanceof ReadError) return null;
    throw error;
  }
}

function isReplyWithQuestion(bytes: Uint8Array): boolean {
  const message = readable(bytes);
  return message !== null && message.question.length === 1 && (message.flags & 0x8000) !== 0;
}
