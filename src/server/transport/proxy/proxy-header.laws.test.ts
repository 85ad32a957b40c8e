import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { printAddress } from '../../base/ip.ts';
import { PROXY_HEADER_MAX, ProxyHeader } from './proxy-header.ts';

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');

/** Builds a version 2 header. */
function binary(command: number, kind: number, rest: Uint8Array): Buffer {
  const head = Buffer.from([...signature, 0x20 | command, kind, 0, 0]);
  head.writeUInt16BE(rest.length, 14);
  return Buffer.concat([head, rest]);
}

function read(bytes: Uint8Array): string {
  const header = new ProxyHeader();
  const verdict = header.read(bytes, 0, bytes.length);
  if (verdict !== 'header') return verdict;
  const width = header.family === 4 ? 4 : 16;
  return header.isNamed
    ? `${printAddress(header.source, 0, width)} ${header.sourcePort} > ${printAddress(header.destination, 0, header.destinationFamily === 4 ? 4 : 16)} ${header.destinationPort}, ${header.length} bytes`
    : `nobody, ${header.length} bytes`;
}

const four = Buffer.of(192, 0, 2, 1, 10, 0, 0, 1, 0x9c, 0x40, 0, 53);

describe('the PROXY protocol header', () => {
  const cases: readonly (readonly [string, Uint8Array, string])[] = [
    [
      'v1',
      Buffer.from('PROXY TCP4 192.0.2.1 10.0.0.1 40000 53\r\nx'),
      '192.0.2.1 40000 > 10.0.0.1 53, 40 bytes',
    ],
    [
      'v1, IPv6',
      Buffer.from('PROXY TCP6 2001:db8::1 ::1 1 2\r\n'),
      '2001:db8::1 1 > ::1 2, 32 bytes',
    ],
    [
      'v1, an IPv4 address in the form of IPv6',
      Buffer.from('PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n'),
      '192.0.2.1 1 > ::1 2, 37 bytes',
    ],
    ['v1, unknown', Buffer.from('PROXY UNKNOWN whatever it says\r\n'), 'nobody, 32 bytes'],
    ['v1, no end', Buffer.from(`PROXY TCP4 ${' '.repeat(200)}`), 'wrong'],
    ['v1, not there yet', Buffer.from('PROXY TCP4 192.0.2.1 10'), 'partial'],
    ['v1, words missing', Buffer.from('PROXY TCP4 192.0.2.1 10.0.0.1 40000\r\n'), 'wrong'],
    ['v1, another family', Buffer.from('PROXY TCP4 ::1 ::2 1 2\r\n'), 'wrong'],
    ['v1, no port', Buffer.from('PROXY TCP4 192.0.2.1 10.0.0.1 65536 53\r\n'), 'wrong'],
    ['v1, a port with zeros', Buffer.from('PROXY TCP4 192.0.2.1 10.0.0.1 0053 53\r\n'), 'wrong'],
    ['v1, over UDP', Buffer.from('PROXY UDP4 192.0.2.1 10.0.0.1 1 53\r\n'), 'wrong'],
    ['v1, two blanks', Buffer.from('PROXY TCP4  192.0.2.1 10.0.0.1 1 53\r\n'), 'wrong'],
    ['v2', binary(1, 0x11, four), '192.0.2.1 40000 > 10.0.0.1 53, 28 bytes'],
    [
      'v2 with more behind the addresses',
      binary(1, 0x12, Buffer.concat([four, Buffer.alloc(50)])),
      '192.0.2.1 40000 > 10.0.0.1 53, 78 bytes',
    ],
    ['v2, local', binary(0, 0x00, Buffer.alloc(0)), 'nobody, 16 bytes'],
    ['v2, local with addresses', binary(0, 0x11, four), 'nobody, 28 bytes'],
    ['v2, a Unix socket', binary(1, 0x31, Buffer.alloc(216)), 'nobody, 232 bytes'],
    ['v2, unspecified', binary(1, 0x00, Buffer.alloc(3)), 'nobody, 19 bytes'],
    ['v2, too short for its addresses', binary(1, 0x11, four.subarray(1)), 'wrong'],
    ['v2, another command', binary(2, 0x11, four), 'wrong'],
    ['v2, another family', binary(1, 0x41, four), 'wrong'],
    ['v2, too long', binary(1, 0x11, Buffer.alloc(PROXY_HEADER_MAX)), 'wrong'],
    ['v3', Buffer.concat([signature, Buffer.of(0x31, 0x11, 0, 12), four]), 'wrong'],
    ['a DNS message over TCP', Buffer.from('001d0001010000010000000000000161', 'hex'), 'none'],
    ['a TLS handshake', Buffer.of(0x16, 3, 1), 'none'],
    ['nothing', Buffer.alloc(0), 'partial'],
  ];
  for (const [what, bytes, expected] of cases)
    test(what, () => assert.equal(read(bytes), expected));

  test('any prefix of a header is partial; nothing beyond the available bytes is read', () => {
    const whole = binary(1, 0x21, Buffer.alloc(60, 7));
    for (let size = 0; size < whole.length; size++)
      assert.equal(read(whole.subarray(0, size)), 'partial');
    fc.assert(
      fc.property(
        fc.constantFrom(Buffer.alloc(0), Buffer.from('PROXY '), signature, whole.subarray(0, 14)),
        fc.uint8Array({ maxLength: 300 }),
        (begin, rest) => {
          const bytes = Buffer.concat([begin, rest]);
          const header = new ProxyHeader();
          if (header.read(bytes, 0, bytes.length) === 'header')
            assert.ok(header.length <= bytes.length && header.length > 0);
        },
      ),
    );
  });
});
