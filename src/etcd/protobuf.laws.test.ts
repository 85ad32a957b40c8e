import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { prefixRange, readLease, readRange, readWatch } from './messages.ts';
import { MessageBuilder, MessageError, MessageReader } from './protobuf.ts';

describe('protocol buffers', () => {
  test('what is written is read: numbers up to 2^53, ids of 64 bits, bytes', () => {
    fc.assert(
      fc.property(
        fc.maxSafeNat(),
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        fc.uint8Array({ maxLength: 300 }),
        fc.integer({ min: 1, max: 5000 }),
        (number, id, bytes, field) => {
          const built = new MessageBuilder()
            .number(field, number)
            .number(field + 1, id)
            .message(field + 2, bytes)
            .build();
          const reader = new MessageReader().over(built);
          if (number !== 0) {
            assert.ok(reader.next());
            assert.deepEqual([reader.field, reader.number()], [field, number]);
          }
          if (id !== 0n) {
            assert.ok(reader.next());
            assert.deepEqual([reader.field, reader.id()], [field + 1, id]);
          }
          assert.ok(reader.next());
          assert.deepEqual([reader.field, reader.bytes()], [field + 2, Buffer.from(bytes)]);
          assert.ok(!reader.next());
        },
      ),
    );
  });

  test('a negative number of 64 bits is one: the TTL of a lease that is no more', () => {
    const bytes = new MessageBuilder().number(3, BigInt.asUintN(64, -1n)).build();
    assert.equal(readLease(bytes).ttl, -1);
  });

  test('any bytes are a message or a MessageError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        for (const read of [readRange, readWatch, readLease]) {
          try {
            read(Buffer.from(bytes));
          } catch (error) {
            assert.ok(error instanceof MessageError);
          }
        }
      }),
    );
  });

  test('a prefix covers what begins with it and nothing else', () => {
    const keys = fc.uint8Array({ minLength: 1, maxLength: 4 }).map((key) => Buffer.from(key));
    fc.assert(
      fc.property(keys, keys, (prefix, key) => {
        const { key: from, end } = prefixRange(prefix);
        const toTheEnd = end!.equals(Buffer.of(0));
        const inside =
          Buffer.compare(key, from) >= 0 && (toTheEnd || Buffer.compare(key, end!) < 0);
        assert.equal(inside, key.subarray(0, prefix.length).equals(prefix));
      }),
    );
  });
});
