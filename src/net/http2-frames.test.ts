import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { contentLength, readFrameHeader, readStatus, writeFrameHeader } from './http2-frames.ts';

describe('the status of a response', () => {
  const rows: readonly (readonly [what: string, block: readonly number[], status: number])[] = [
    ['an entry of the static table', [0x88], 200],
    ['another one', [0x8d], 404],
    ['behind a change of the table’s size', [0x20, 0x88], 200],
    ['behind a change of more than five bits', [0x3f, 0xe1, 0x1f, 0x88], 200],
    ['spelled out, to be remembered', [0x48, 3, 0x35, 0x30, 0x33], 503],
    ['spelled out, not to be remembered', [0x08, 3, 0x32, 0x30, 0x30], 200],
    ['spelled out, never to be remembered', [0x18, 3, 0x31, 0x30, 0x33], 103],
    // RFC 7541 appendix C.6.1: 302.
    ['in Huffman’s code', [0x48, 0x82, 0x64, 0x02], 302],
    ['in Huffman’s code: 503', [0x08, 0x83, 0x6c, 0x0c, 0xff], 503],
    ['another field first', [0x84], 0],
    ['no number', [0x48, 3, 0x35, 0x30, 0x78], 0],
    ['nothing', [], 0],
    ['a text that is cut off', [0x48, 0x83], 0],
  ];
  for (const [what, block, status] of rows)
    test(`${what}: ${status}`, () => assert.equal(readStatus(Buffer.from(block)), status));

  test('any bytes are read without an error', () => {
    let seed = 1;
    for (let round = 0; round < 20_000; round++) {
      const block = Buffer.alloc(round % 9);
      for (let i = 0; i < block.length; i++) {
        seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
        block[i] = seed >>> 16;
      }
      const status = readStatus(block);
      assert.ok(status === 0 || (status >= 100 && status < 600));
    }
  });
});

test('a field with a name beyond four bits', () => {
  assert.deepEqual([...contentLength(300)], [0x0f, 28 - 15, 3, 0x33, 0x30, 0x30]);
});

test('frame headers come back as they were written', () => {
  const bytes = Buffer.alloc(9);
  assert.equal(writeFrameHeader(bytes, 0, 16_384, 1, 5, 0x3fff_ffff), 9);
  assert.deepEqual(readFrameHeader(bytes, 0), {
    length: 16_384,
    type: 1,
    flags: 5,
    stream: 0x3fff_ffff,
  });
});
