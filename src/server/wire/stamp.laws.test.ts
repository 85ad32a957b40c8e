import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import * as any from '../../../test/fuzz/arbitraries.ts';
import { lower } from '../../../test/fuzz/spelling.ts';
import { readMessage, writeMessage, type Message } from './message.ts';
import { ReadError } from './reader.ts';
import type { Reply } from './reply.ts';
import { stamp, STAMP_ROOM } from './stamp.ts';
import { fromUpstream } from './upstream.ts';
import { QueryMessage } from './query-message.ts';

describe('laws of stamp', () => {
  const asked = fc.record({
    udpSize: fc.integer({ min: 0, max: 1500 }),
    edns: fc.boolean(),
    padding: fc.integer({ min: 0, max: 700 }),
    stream: fc.boolean(),
    errors: fc.array(fc.record({ code: any.word, text: fc.string({ maxLength: 300 }) }), {
      maxLength: 3,
    }),
  });

  test('a stamped reply never exceeds the limit, is cut between records, and has TC exactly if it was cut', () => {
    fc.assert(
      fc.property(any.reply, asked, (message, { udpSize, edns, padding, stream, errors }) => {
        const uncut = { ...message, flags: message.flags & ~0x0200 };
        const reply = taken(writeMessage(uncut)).with({ errors });
        const query = clientQuery(message, edns ? { udpSize, padding } : null);
        query.proto = stream ? 'tcp' : 'udp';
        const out = new Uint8Array(reply.size + STAMP_ROOM);
        const length = stamp(reply, query, out, 0);
        assert.ok(length <= query.limit, `${length} of ${query.limit}`);
        assert.ok(length <= out.length);
        const sent = readMessage(out, 0, length);
        const whole = read(reply);
        const kept = sent.answer.length + sent.authority.length + sent.additional.length;
        const had = whole.answer.length + whole.authority.length + whole.additional.length;
        assert.equal((sent.flags & 0x0200) !== 0, kept < had);
        // Records are cut off at the end, so the start of each section remains.
        assert.deepEqual(lower(sent).answer, lower(whole).answer.slice(0, sent.answer.length));
        assert.equal(sent.edns !== null, edns);
        assert.deepEqual(sent.question[0]!.name, readMessage(query.bytes).question[0]!.name);
      }),
      { numRuns: 400 },
    );
  });
});

function clientQuery(
  message: Message,
  edns: { udpSize: number; padding: number } | null,
): QueryMessage {
  const query = new QueryMessage();
  const options = edns === null ? [] : [{ code: 12, data: new Uint8Array(edns.padding) }];
  const bytes = writeMessage({
    id: 99,
    flags: 0x0100,
    rcode: 0,
    question: message.question,
    answer: [],
    authority: [],
    additional: [],
    edns: edns === null ? null : { udpSize: edns.udpSize, version: 0, dnssecOk: false, options },
  });
  assert.equal(query.read(bytes, 0, bytes.length), 'serve');
  return query;
}

function taken(bytes: Uint8Array): Reply {
  const reply = fromUpstream(bytes);
  if (reply instanceof ReadError) throw reply;
  return reply;
}

function read(reply: Reply): Message {
  return readMessage(reply.bytes, reply.start, reply.end);
}
