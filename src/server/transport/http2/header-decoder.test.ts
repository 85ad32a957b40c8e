import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import fc from 'fast-check';

import { literals } from '../../../../test/kit/http2-client.ts';
import { HeaderDecoder } from './header-decoder.ts';

function decode(decoder: HeaderDecoder, block: Uint8Array): string[] | null {
  const fields: string[] = [];
  decoder.begin(block, 0, block.length);
  while (decoder.next()) {
    const { name, nameStart, nameEnd, value, valueStart, valueEnd } = decoder;
    const text = (bytes: Uint8Array, start: number, end: number): string =>
      Buffer.from(bytes.subarray(start, end)).toString('latin1');
    fields.push(`${text(name, nameStart, nameEnd)}: ${text(value, valueStart, valueEnd)}`);
  }
  return decoder.broken ? null : fields;
}

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('header blocks', () => {
  // RFC 7541, appendices C.3 and C.4: three requests on one connection, first without and then with Huffman codes.
  const requests = [
    [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com'],
    [
      ':method: GET',
      ':scheme: http',
      ':path: /',
      ':authority: www.example.com',
      'cache-control: no-cache',
    ],
    [
      ':method: GET',
      ':scheme: https',
      ':path: /index.html',
      ':authority: www.example.com',
      'custom-key: custom-value',
    ],
  ];

  for (const [what, blocks] of [
    [
      'plain strings',
      [
        '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '8286 84be 5808 6e6f 2d63 6163 6865',
        '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
      ],
    ],
    [
      'Huffman codes',
      [
        '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
        '8286 84be 5886 a8eb 1064 9cbf',
        '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
      ],
    ],
  ] as const) {
    test(`the requests in RFC 7541 appendix C are decoded, ${what}`, () => {
      const decoder = new HeaderDecoder();
      blocks.forEach((block, i) => assert.deepEqual(decode(decoder, hex(block)), requests[i]));
    });
  }

  test('the oldest entries leave the table first when it is full or made smaller', () => {
    const decoder = new HeaderDecoder();
    const remembered = (name: string, value: string): Buffer => {
      const plain = literals([[name, value]]);
      plain[0] = 0x40;
      return plain;
    };
    for (let i = 0; i < 100; i++) decode(decoder, remembered('x', `${i}`.padEnd(50)));
    // 49 entries of 83 bytes fit into 4096.
    assert.deepEqual(decode(decoder, hex('be')), [`x: ${'99'.padEnd(50)}`]);
    assert.deepEqual(decode(decoder, Buffer.of(0x80 | (61 + 49))), [`x: ${'51'.padEnd(50)}`]);
    assert.deepEqual(decode(decoder, Buffer.of(0x20, 0x3f, 0xe1, 0x1f)), [], 'emptied, then 4096');
    assert.equal(decode(decoder, hex('be')), null);
  });

  test('a malformed header block breaks the decoder permanently', () => {
    for (const block of [
      '80', // index 0
      'be', // empty table
      '00', // no name
      '0001', // missing name
      '7fffffffffff', // endless integer
      '00 81 00 01 61', // cut Huffman code
      '00 84 ff ff ff ff 00', // end code in a string
      '3fe21f', // table too large
      '82 20', // size change after a field
    ]) {
      const decoder = new HeaderDecoder();
      assert.equal(decode(decoder, hex(block)), null, block);
      assert.equal(decode(decoder, hex('82')), null, `${block}, and one more`);
    }
  });

  test('encoded fields decode to the same', () => {
    const latin = fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 300 });
    fc.assert(
      fc.property(fc.array(fc.tuple(latin, latin), { maxLength: 8 }), (fields) => {
        assert.deepEqual(
          decode(new HeaderDecoder(), literals(fields)),
          fields.map(([name, value]) => `${name}: ${value}`),
        );
      }),
    );
  });

  test('reading ends for any bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 5 }), (blocks) => {
        const decoder = new HeaderDecoder();
        for (const block of blocks) {
          const fields = decode(decoder, block);
          assert.ok(fields === null || fields.length <= block.length);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
