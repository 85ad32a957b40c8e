import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { Sha1Message } from './sha1.ts';

test("a digest equals the runtime's, for messages of one block and of several", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
      const message = new Sha1Message(bytes.length);
      message.bytes.set(bytes);
      const digest = new Uint8Array(20);
      message.digest(digest);
      assert.deepEqual(Buffer.from(digest), hash('sha1', bytes, 'buffer'));
      message.digest(digest);
      assert.deepEqual(Buffer.from(digest), hash('sha1', bytes, 'buffer'));
    }),
  );
});

test('a digest may overwrite its own message and the bytes that follow', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 255 }),
      fc.integer({ min: 1, max: 9 }),
      (salt, times) => {
        const message = new Sha1Message(20 + salt.length);
        message.bytes.set(salt, 20);
        let expected: Uint8Array = new Uint8Array(20);
        for (let i = 0; i < times; i++) {
          message.digest(message.bytes);
          expected = hash('sha1', Buffer.concat([expected, salt]), 'buffer');
        }
        assert.deepEqual([...message.bytes.subarray(0, 20)], [...expected]);
      },
    ),
  );
});
