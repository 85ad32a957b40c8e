import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MessageBuilder, MessageError, MessageReader, WIRE } from './protobuf.ts';

describe('protocol buffers', () => {
  test('written values read back: numbers up to 2^53, 64-bit ids, bytes', () => {
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

  test('fixed-size numbers, fractions and signed lists decode to the encoded values', () => {
    fc.assert(
      fc.property(
        fc.maxSafeNat(),
        fc.double({ noNaN: true }),
        fc.array(fc.integer({ min: -(2 ** 50), max: 2 ** 50 })),
        (fixed, fraction, list) => {
          const bytes = new MessageBuilder()
            .fixed64(1, BigInt(fixed))
            .double(2, fraction)
            .signedList(3, list)
            .build();
          const reader = new MessageReader().over(bytes);
          let seen = 0;
          while (reader.next()) {
            if (reader.field === 1) assert.equal(reader.number(), fixed);
            if (reader.field === 2) assert.equal(reader.kind, WIRE.fixed64);
            if (reader.field !== 3) continue;
            const numbers = new MessageBuilder();
            for (const value of list) numbers.message(1, Buffer.alloc(0)).signed(2, value);
            const read: number[] = [];
            for (const each = new MessageReader().over(numbers.build()); each.next();) {
              if (each.field === 1) read.push(0);
              else read[read.length - 1] = unsigned(each.number());
            }
            assert.deepEqual(
              read,
              list.map((value) => value + 0),
            );
            seen++;
          }
          assert.equal(seen, list.length === 0 ? 0 : 1);
        },
      ),
    );
  });

  test('any bytes are either a message or a MessageError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          for (const reader = new MessageReader().over(Buffer.from(bytes)); reader.next();)
            assert.ok(reader.field > 0);
        } catch (error) {
          assert.ok(error instanceof MessageError);
        }
      }),
    );
  });
});

/** Converts to the unsigned form of a `sint64`. */
function unsigned(value: number): number {
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}
