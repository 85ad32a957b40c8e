import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TYPE } from './iana.ts';
import { readMessage } from './message.ts';
import { parseName } from './name.ts';
import { MessageFull, MessageWriter, SECTION } from './writer.ts';
import { makeQueryMessage, QueryMessage } from './query-message.ts';

const owner = parseName('www.example.org');

describe('writing messages', () => {
  test('a name already in the message becomes a pointer, with or without labels before it', () => {
    const to = new MessageWriter();
    to.begin(1, 0);
    to.name(owner);
    const first = to.length;
    to.name(owner);
    assert.equal(to.length - first, 2);
    to.name(parseName('ftp.EXAMPLE.org'));
    assert.equal(to.length - first, 2 + 4 + 2);
    to.name(parseName('other.org'));
    assert.equal(to.length - first, 8 + 6 + 2);
  });

  test('names in types that forbid compression are written in full', () => {
    const to = new MessageWriter();
    to.begin(1, 0);
    to.name(owner);
    const first = to.length;
    to.name(owner, false);
    assert.equal(to.length - first, owner.length);
  });

  test('a null owner is a pointer to the question', () => {
    const to = new MessageWriter();
    to.reply(makeQueryMessage(new QueryMessage(), owner, TYPE.A), 0x0400);
    to.record(SECTION.answer, null, TYPE.A, 5, Uint8Array.of(10, 0, 0, 1));
    const reply = to.finish(0, 'test');
    const message = readMessage(reply.bytes, reply.start, reply.end);
    assert.equal(message.answer[0]!.name, 'www.example.org.');
    assert.equal(message.flags, 0x8400);
    assert.deepEqual(
      [...reply.bytes.subarray(reply.start + 12 + 17 + 4, reply.start + 12 + 17 + 6)],
      [0xc0, 12],
    );
  });

  test('counts can exceed 255', () => {
    const to = new MessageWriter();
    to.reply(makeQueryMessage(new QueryMessage(), owner, TYPE.A), 0);
    for (let i = 0; i < 700; i++)
      to.record(SECTION.answer, null, TYPE.A, i, Uint8Array.of(10, 0, i >> 8, i & 0xff));
    const reply = to.finish(0, 'test');
    assert.equal(reply.answers, 700);
    assert.equal(readMessage(reply.bytes, reply.start, reply.end).answer.length, 700);
  });

  test('no message exceeds 65535 bytes, wherever in a slab it began', () => {
    for (const before of [0, 100, 40_000, 65_000]) {
      const to = new MessageWriter();
      to.begin(0, 0);
      to.bytes(new Uint8Array(before));
      to.finish(0, 'test');
      to.begin(1, 0);
      to.bytes(new Uint8Array(65_535 - 12));
      assert.equal(to.length, 65_535);
      assert.throws(() => to.u8(1), MessageFull);
      // The writer is ready for the next message.
      to.begin(2, 0);
      assert.equal(to.finish(0, 'test').size, 12);
    }
  });

  test('a message that reaches the end of its slab moves as a whole, with its pointers', () => {
    const to = new MessageWriter();
    to.begin(0, 0);
    to.bytes(new Uint8Array(65_400));
    const before = to.finish(0, 'test');
    to.reply(makeQueryMessage(new QueryMessage(), owner, TYPE.A), 0);
    for (let i = 0; i < 20; i++)
      to.record(SECTION.answer, owner, TYPE.A, i, Uint8Array.of(10, 0, 0, i));
    const reply = to.finish(0, 'test');
    assert.notEqual(reply.bytes, before.bytes);
    const { answer } = readMessage(reply.bytes, reply.start, reply.end);
    assert.deepEqual(
      answer.map(({ name, ttl }) => [name, ttl]),
      Array.from({ length: 20 }, (_, i) => ['www.example.org.', i]),
    );
  });

  test('finished messages stay unchanged while others are started, written and abandoned', () => {
    const to = new MessageWriter();
    const write = (ttl: number): void => {
      to.reply(makeQueryMessage(new QueryMessage(), owner, TYPE.A), 0);
      to.record(SECTION.answer, null, TYPE.A, ttl, Uint8Array.of(10, 0, ttl >> 8, ttl & 0xff));
    };
    const replies = Array.from({ length: 3000 }, (_, i) => {
      write(99_999);
      if (i % 2 === 0) to.abandon();
      write(i);
      return to.finish(0, 'test');
    });
    replies.forEach(({ bytes, start, end }, i) => {
      assert.deepEqual(
        readMessage(bytes, start, end).answer.map(({ ttl }) => ttl),
        [i],
      );
    });
  });

  test('pointers never target a name beyond the first 16 KiB', () => {
    const to = new MessageWriter();
    to.begin(0, 0);
    to.bytes(new Uint8Array(0x4000));
    to.name(owner);
    const first = to.length;
    to.name(owner);
    assert.equal(to.length - first, owner.length);
  });

  test("take returns a copy of any message's bytes", () => {
    const to = new MessageWriter();
    to.begin(7, 0x0100);
    to.question(owner, TYPE.AAAA, 1);
    assert.deepEqual(readMessage(to.take()).question, [
      { name: 'www.example.org.', type: 28, class: 1 },
    ]);
  });
});
