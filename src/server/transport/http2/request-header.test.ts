import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { costsAtMost } from '../../../../test/kit/growth.ts';

import { literals, requestFields } from '../../../../test/kit/http2-client.ts';
import { RequestHeader, type HeaderVerdict } from './request-header.ts';

const request = literals(requestFields('GET', '/dns-query?dns=AAAA'));

/** A literal with incremental indexing, which either has its own name or reuses that of the most recent entry. */
function remembered(name: string | null, value: string): Buffer {
  const text = (written: string): Buffer => {
    const rest = written.length - 0x7f;
    const length = rest < 0 ? [written.length] : [0x7f, 0x80 | (rest & 0x7f), rest >> 7];
    return Buffer.concat([Buffer.of(...length), Buffer.from(written)]);
  };
  return Buffer.concat([
    Buffer.of(name === null ? 0x7e : 0x40),
    ...(name === null ? [] : [text(name)]),
    text(value),
  ]);
}

/** Refers to the most recently indexed field. */
const LAST_ENTRY = 0xbe;

function read(header: RequestHeader, block: Uint8Array): HeaderVerdict {
  return header.read(block, 0, block.length, false);
}

describe('a request header', () => {
  test('is read if a repeated long field stays within the announced limit', () => {
    const header = new RequestHeader();
    const block = Buffer.concat([request, remembered('x-long', 'v'.repeat(2000))]);
    assert.equal(read(header, block), 'request');
    assert.equal(read(header, Buffer.concat([request, Buffer.alloc(7, LAST_ENTRY)])), 'request');
  });

  test('is too large when its fields are, however few bytes encode them', () => {
    const header = new RequestHeader();
    assert.equal(
      read(header, Buffer.concat([request, remembered('x-long', 'v'.repeat(2000))])),
      'request',
    );
    assert.equal(read(header, Buffer.concat([request, Buffer.alloc(9, LAST_ENTRY)])), 'too-large');
    // The table is unchanged, so the connection remains usable.
    assert.equal(read(header, Buffer.concat([request, Buffer.of(LAST_ENTRY)])), 'request');
  });

  test('that expands to four times the announced limit is not read any further', async () => {
    const header = new RequestHeader();
    const long = Buffer.concat([request, remembered('x-long', 'v'.repeat(2000))]);
    assert.equal(read(header, long), 'request');
    const bomb = Buffer.concat([request, Buffer.alloc(10_000, LAST_ENTRY)]);
    assert.equal(read(header, bomb), 'excessive');
    const longer = Buffer.concat([request, Buffer.alloc(1_000_000, LAST_ENTRY)]);
    await costsAtMost(
      5,
      () => read(header, longer),
      () => read(header, bomb),
    );
  });

  for (const [what, times] of [
    ['a long field is named again and again', [LAST_ENTRY]],
    ['a long name is remembered again and again', [...remembered(null, '')]],
  ] as const) {
    test(`takes no longer where ${what}`, async () => {
      const header = new RequestHeader();
      const usual = literals(Array.from({ length: 400 }, () => ['x-name', 'v'.repeat(30)]));
      read(header, Buffer.concat([request, remembered('x'.repeat(4000), '')]));
      const bytes = Buffer.alloc(12_000, Buffer.from(times));
      assert.notEqual(read(header, bytes), 'broken');
      const [block, crowded] = [Buffer.concat([request, usual]), Buffer.concat([request, bytes])];
      const other = new RequestHeader();
      // Reading every field would take a thousand times as long.
      await costsAtMost(
        200,
        () => read(header, crowded),
        () => read(other, block),
      );
    });
  }
});
