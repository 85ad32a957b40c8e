import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MessageBuilder, MessageError } from '../base/protobuf.ts';
import { prefixRange, readLease, readRange, readWatch, TooManyEvents } from './messages.ts';

describe("etcd's messages", () => {
  test('a negative 64-bit number stays negative: the TTL of an expired lease', () => {
    const bytes = new MessageBuilder().number(3, BigInt.asUintN(64, -1n)).build();
    assert.equal(readLease(bytes).ttl, -1);
  });

  test('any bytes are either a message or a MessageError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        for (const read of [(one: Buffer) => readRange(one), readWatch, readLease]) {
          try {
            read(Buffer.from(bytes));
          } catch (error) {
            assert.ok(error instanceof MessageError);
          }
        }
      }),
    );
  });

  test('more keys than requested, and more events than etcd ever sends at once, are not read', () => {
    const keys = Buffer.alloc(2 * 4000, Buffer.of(0x12, 0));
    assert.equal(readRange(keys).kvs.length, 4000);
    assert.equal(readRange(keys, 4000).kvs.length, 4000);
    assert.throws(() => readRange(keys, 3999), /more than the 3999 requested keys/);
    const events = Buffer.alloc(2 * 100_001, Buffer.of(0x5a, 0));
    assert.equal(readWatch(events.subarray(2)).events.length, 100_000);
    assert.throws(() => readWatch(events), TooManyEvents);
  });

  test('a prefix covers exactly the keys that begin with it', () => {
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
