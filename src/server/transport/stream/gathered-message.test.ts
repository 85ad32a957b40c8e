import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import fc from 'fast-check';

import { GatheredMessage } from './gathered-message.ts';
import { MESSAGE_MAX } from '../../wire/iana.ts';

describe('a message that arrives in pieces', () => {
  test('is the pieces in sequence, in at most twice the memory plus 512 bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 400 }), { maxLength: 60 }), (pieces) => {
        const message = new GatheredMessage();
        for (const piece of pieces) assert.ok(message.add(piece, 0, piece.length));
        assert.deepEqual(message.bytes, Buffer.concat(pieces));
        assert.equal(message.length, message.bytes.length);
        assert.ok(message.held <= Math.max(512, 2 * message.length));
      }),
    );
  });

  test('is refused if it is longer than a message can be, and the received part stays', () => {
    const message = new GatheredMessage();
    const piece = Buffer.alloc(1000, 7);
    for (let i = 0; i < 65; i++) assert.ok(message.add(piece, 0, 1000));
    assert.equal(message.add(piece, 0, MESSAGE_MAX - 65_000 + 1), false);
    assert.equal(message.length, 65_000);
    assert.ok(message.add(piece, 0, MESSAGE_MAX - 65_000));
    assert.equal(message.held, MESSAGE_MAX);
  });
});
