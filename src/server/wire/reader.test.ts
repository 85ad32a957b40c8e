import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { printName } from './name.ts';
import { HOPS_MAX, Reader, ReadError } from './reader.ts';

/**
 * Creates a reader at `at` in a message that consists of twelve header bytes followed by `parts` (where text becomes
 * labels).
 */
function readerOf(at: number, ...parts: (string | number)[]): Reader {
  const body = parts.flatMap((part) =>
    typeof part === 'number' ? [part] : [part.length, ...Buffer.from(part)],
  );
  const reader = new Reader(Uint8Array.of(...Array<number>(12).fill(0), ...body));
  reader.at = at;
  return reader;
}

function failure(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof ReadError);
    return error.message;
  }
  return assert.fail('nothing was thrown');
}

describe('reading', () => {
  test('returned bytes are copies, even of a Buffer that is reused', () => {
    const held = Buffer.from([1, 2, 3, 4]);
    const reader = new Reader(held);
    reader.at = 1;
    const bytes = reader.bytes(2);
    held.fill(9);
    assert.deepEqual([...bytes], [2, 3]);
  });

  test('numbers are read in network order, and the position advances past them', () => {
    const reader = new Reader(Uint8Array.of(1, 2, 3, 0xff, 0xff, 0xff, 0xff, 9, 9, 9, 9, 9, 9, 7));
    assert.deepEqual([reader.u8(), reader.u16(), reader.u32()], [1, 0x203, 0xffff_ffff]);
    assert.equal(reader.u48(), 0x0909_0909_0909);
    assert.deepEqual(reader.rest(), Uint8Array.of(7));
    assert.equal(reader.left, 0);
  });

  test('an error names the missing part and its offset from the start of the message', () => {
    const reader = new Reader(Uint8Array.of(0, 0, 0, 1, 2, 3), 3);
    reader.u16();
    assert.equal(
      failure(() => reader.u16()),
      'the message ends before a 16-bit number at byte 2',
    );
  });

  test('nothing beyond the end is read, even if the buffer is longer', () => {
    assert.match(
      failure(() => new Reader(Uint8Array.of(1, 2, 3), 0, 1).u16()),
      /ends before a 16-bit number/,
    );
    assert.match(
      failure(() => new Reader(Uint8Array.of(3, 65, 65, 65, 0), 0, 3).name()),
      /ends in the middle of a name/,
    );
  });

  test('compressed names are followed, and reading continues after the pointer', () => {
    const reader = readerOf(21, 'org', 0, 'www', 0xc0, 12, 'a', 0xc0, 17, 42);
    assert.equal(reader.message.length, 12 + 5 + 6 + 4 + 1);
    reader.at = 23;
    assert.equal(reader.name(), 'a.www.org.');
    assert.equal(reader.u8(), 42);
    reader.at = 23;
    assert.equal(printName(reader.wireName()), 'a.www.org.');
  });

  test('a pointer to itself, forward, or into a loop is an error', () => {
    assert.match(
      failure(() => readerOf(12, 0xc0, 12).name()),
      /points forward or at itself at byte 12/,
    );
    assert.match(
      failure(() => readerOf(12, 0xc0, 14, 0).name()),
      /points forward/,
    );
    assert.match(
      failure(() => readerOf(14, 'a', 0xc0, 12).name()),
      /overlaps its pointer/,
    );
    // a → b → a: the second step leads to a position that has already been read.
    assert.match(
      failure(() => readerOf(16, 'a', 0xc0, 16, 'b', 0xc0, 12).name()),
      /points forward/,
    );
  });

  test('a pointer to labels that run into the pointer itself is an error', () => {
    // There is a three-byte label at 12, the last two bytes of which are the pointer to it.
    assert.match(
      failure(() => readerOf(14, 3, 97, 0xc0, 12, 0).name()),
      /overlaps its pointer at byte 12/,
    );
  });

  test('a pointer into the header is an error', () => {
    assert.match(
      failure(() => readerOf(12, 0xc0, 0).name()),
      /points into the header/,
    );
  });

  test('the label kinds 01 and 10 are errors', () => {
    assert.match(
      failure(() => readerOf(12, 0x41, 0, 0).name()),
      /unknown kind 0x41 at byte 12/,
    );
    assert.match(
      failure(() => readerOf(12, 0x80, 0, 0).name()),
      /unknown kind 0x80/,
    );
  });

  test('a name that exceeds 255 bytes through pointers is an error', () => {
    const label = 'x'.repeat(60);
    const reader = readerOf(12 + 61 * 4 + 1, label, label, label, label, 0, 'yyyyyyyyyy', 0xc0, 12);
    assert.match(
      failure(() => reader.name()),
      /longer than 255 bytes/,
    );
  });

  test('pointer chains are limited, so that a message full of them cannot keep a reader busy', () => {
    const reader = readerOf(0, ...longChain());
    reader.at = 11 + 2 * HOPS_MAX;
    assert.equal(reader.name(), '.');
    reader.at = 11 + 2 * (HOPS_MAX + 1);
    assert.match(
      failure(() => reader.name()),
      /more than 126 pointers/,
    );
  });
});

/** 130 two-byte pointers, each to the previous one. */
function longChain(): number[] {
  const out = [0];
  for (let i = 0; i < 130; i++) {
    const target = i === 0 ? 12 : 11 + 2 * i;
    out.push(0xc0 | (target >> 8), target & 0xff);
  }
  return out;
}
