import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import * as any from '../../../test/fuzz/arbitraries.ts';
import { LooseWriter } from '../../../test/fuzz/loose-writer.ts';
import { lower } from '../../../test/fuzz/spelling.ts';
import { readMessage, writeMessage } from './message.ts';
import { printMessage } from './print.ts';
import { ReadError } from './reader.ts';

describe('laws of messages', () => {
  test('a written message reads back, except for the spelling of compressed names', () => {
    fc.assert(
      fc.property(any.message, (message) => {
        assert.deepEqual(lower(readMessage(writeMessage(message))), lower(message));
      }),
      { numRuns: 300 },
    );
  });

  test('a message that cannot be written leaves no trace in later ones', () => {
    fc.assert(
      fc.property(any.message, (message) => {
        const before = writeMessage(message);
        const name = `${'a'.repeat(64)}.`;
        const bad = { ...message, question: [...message.question, { name, type: 1, class: 1 }] };
        assert.throws(() => writeMessage(bad));
        assert.deepEqual(writeMessage(message), before);
      }),
    );
  });

  test('a message without compression reads back exactly', () => {
    fc.assert(
      fc.property(any.message, (message) => {
        assert.deepEqual(readMessage(writeMessage(message, new LooseWriter())), message);
      }),
      { numRuns: 300 },
    );
  });

  test('reading any bytes gives a message or a ReadError', () => {
    fc.assert(
      fc.property(any.bytes(0, 300), (bytes) => {
        readOrError(bytes);
      }),
    );
  });

  test('reading a damaged message gives a printable message or a ReadError within the bytes', () => {
    const damage = fc.array(fc.tuple(fc.nat(), any.byte), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(any.message, damage, fc.nat(), (message, changes, cut) => {
        let bytes = writeMessage(message);
        for (const [at, value] of changes) bytes[at % bytes.length] = value;
        if (cut % 3 === 0) bytes = bytes.subarray(0, cut % bytes.length);
        readOrError(bytes);
      }),
      { numRuns: 500 },
    );
  });

  test('a message reads the same inside a larger buffer', () => {
    fc.assert(
      fc.property(any.message, any.bytes(0, 40), any.bytes(0, 40), (message, before, after) => {
        const bytes = writeMessage(message);
        const buffer = Uint8Array.of(...before, ...bytes, ...after);
        assert.deepEqual(
          readMessage(buffer, before.length, before.length + bytes.length),
          readMessage(bytes),
        );
      }),
    );
  });
});

function readOrError(bytes: Uint8Array): void {
  try {
    printMessage(readMessage(bytes));
  } catch (error) {
    if (!(error instanceof ReadError)) throw error;
    assert.ok(
      error.offset >= 0 && error.offset <= bytes.length,
      `offset ${error.offset} of ${bytes.length}`,
    );
  }
}
