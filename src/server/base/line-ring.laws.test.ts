import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { LineReader, LineWriter, makeLineRing } from './line-ring.ts';

const line = fc.oneof(
  fc.string({ maxLength: 200 }),
  fc.string({ unit: 'grapheme', maxLength: 200 }),
  fc.string({ minLength: 1000, maxLength: 5000 }),
);

/** A step that writes a line, or reads up to a number of bytes. */
const step = fc.oneof(
  fc.record({ write: line }),
  fc.record({ read: fc.integer({ min: 0, max: 5000 }) }),
);

describe('a ring of lines', () => {
  test('the output equals the input, in whole lines and in order, minus the lines counted as lost', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const memory = makeLineRing(4096, new Int32Array(new SharedArrayBuffer(4)));
        const writer = new LineWriter(memory);
        const reader = new LineReader(memory);
        const expected: string[] = [];
        const bytes: number[] = [];
        const read = (count: number): void => {
          const some = reader.pieces().flatMap((piece) => [...piece]);
          bytes.push(...some.slice(0, count));
          reader.release(Math.min(count, some.length));
        };
        for (const one of steps) {
          if ('read' in one) read(one.read);
          else {
            const before = reader.lost;
            writer.write(one.write);
            const waiting = reader.pieces().reduce((sum, piece) => sum + piece.length, 0);
            assert.ok(waiting <= 4096);
            if (reader.lost === before) expected.push(one.write);
            else {
              // Lines are lost only for lack of space.
              assert.equal(reader.lost, before + 1);
              const size = new TextEncoder().encode(one.write).length + 1;
              assert.ok(size > 4096 - waiting, `${size} bytes, ${4096 - waiting} free`);
            }
          }
        }
        read(Infinity);
        const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes));
        const wellFormed = expected.map((each) => `${each.toWellFormed()}\n`).join('');
        assert.equal(text, wellFormed);
      }),
    );
  });

  test('positions may wrap', () => {
    const memory = makeLineRing(4096, new Int32Array(new SharedArrayBuffer(4)));
    memory.words[0] = memory.words[1] = 0x7fff_fff0 | 0;
    const writer = new LineWriter(memory);
    const reader = new LineReader(memory);
    for (let turn = 0; turn < 3; turn++) {
      writer.write('x'.repeat(2000));
      const pieces = reader.pieces();
      assert.equal(
        pieces.reduce((sum, { length }) => sum + length, 0),
        2001,
      );
      reader.release(2001);
    }
    assert.equal(reader.lost, 0);
  });

  test('the bell rings once until it is answered', () => {
    const bell = new Int32Array(new SharedArrayBuffer(4));
    const writer = new LineWriter(makeLineRing(4096, bell));
    writer.write('a');
    assert.equal(bell[0], 1);
    writer.write('b');
    bell[0] = 0;
    writer.write('c');
    assert.equal(bell[0], 1);
  });
});
