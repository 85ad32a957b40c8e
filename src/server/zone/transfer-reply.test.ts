import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TYPE } from '../wire/iana.ts';
import { readMessage, type Message } from '../wire/message.ts';
import { parseName } from '../wire/name.ts';
import { makeQuery } from '../transport/query.ts';
import type { Reply } from '../wire/reply.ts';
import { MessageFull, MessageWriter } from '../wire/writer.ts';
import { transferReply } from './transfer-reply.ts';
import type { RecordStream, StreamStep } from './transfer-source.ts';

const owner = parseName('example.org.');

/** A stream of records with data of these sizes in bytes, where null is a pause. */
function streamOf(sizes: readonly (number | null)[]): RecordStream {
  let at = -1;
  return {
    next(): StreamStep {
      if (++at === sizes.length) return 'end';
      return sizes[at] === null ? 'pause' : 'record';
    },
    get size() {
      return owner.length + 10 + sizes[at]!;
    },
    write: (to) => to.record(6, owner, TYPE.NULL, 60, new Uint8Array(sizes[at]!)),
  };
}

interface Given {
  readonly messages: readonly Message[];
  readonly sizes: readonly number[];
  readonly pauses: number;
  readonly records: number;
}

function given(sizes: readonly (number | null)[]): Given {
  let records = -1;
  let pauses = 0;
  const messages: Message[] = [];
  const lengths: number[] = [];
  const query = makeQuery(owner, TYPE.AXFR);
  let reply: Reply = transferReply(query, 'test', new MessageWriter(), streamOf(sizes), (count) => {
    records = count;
  });
  for (;;) {
    messages.push(readMessage(reply.bytes, reply.start, reply.end));
    lengths.push(reply.size);
    const { rest } = reply;
    if (rest === null) return { messages, sizes: lengths, pauses, records };
    let next = rest();
    for (; next === null; next = rest()) pauses++;
    reply = next;
  }
}

describe('transfer messages', () => {
  test('end with the first record that makes them 16 KB long', () => {
    const { sizes, records } = given(Array.from({ length: 400 }, () => 200));
    assert.equal(records, 400);
    assert.ok(sizes.every((size) => size < 16_300));
    assert.ok(sizes.slice(0, -1).every((size) => size >= 16_000));
  });

  test('contain a single record if it does not fit with others', () => {
    const { messages, records } = given([100, 100, 60_000, 100, 65_000, 64_000, 100]);
    assert.deepEqual(
      messages.map(({ answer }) => answer.length),
      [3, 1, 1, 1, 1],
    );
    assert.equal(records, 7);
  });

  test('end where a stream pauses, and are never empty', () => {
    const { messages, pauses } = given([10, null, 10, 10, null, null, 10]);
    assert.deepEqual(
      messages.map(({ answer }) => answer.length),
      [1, 2, 1],
    );
    assert.equal(pauses, 1);
  });

  test('cannot contain a record that is larger than any message', () => {
    assert.throws(() => given([10, 65_535]), MessageFull);
  });
});
