import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MessageBuilder, MessageError } from '../base/protobuf.ts';
import { prefixRange, readLease, readRange, readWatch } from './messages.ts';

describe("etcd's messages", () => {
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
