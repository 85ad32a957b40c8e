/** Malformed and malicious packets. */
import { queryBytes } from './loopback.ts';

/** The expected reaction: a response code, silence, or any reaction as long as the server survives. */
export type Expected =
  | 'NOERROR'
  | 'FORMERR'
  | 'SERVFAIL'
  | 'NXDOMAIN'
  | 'NOTIMP'
  | 'REFUSED'
  | 'BADVERS'
  | 'silence'
  | 'whatever';

/** A packet and the reactions that the server is allowed to have. */
export interface HostilePacket {
  readonly what: string;
  readonly bytes: Buffer;
  readonly expected: Expected;
}

const header = (counts: readonly [number, number, number, number], flags = 0x0100): Buffer => {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt16BE(0x1234, 0);
  bytes.writeUInt16BE(flags, 2);
  counts.forEach((count, i) => bytes.writeUInt16BE(count, 4 + 2 * i));
  return bytes;
};

const aIn = Buffer.from([0, 1, 0, 1]);
const question = Buffer.concat([Buffer.from('\x01a\x04test\x00', 'latin1'), aIn]);
const opt = (version = 0, length = 0): Buffer =>
  Buffer.from([0, 0, 41, 0x10, 0, 0, version, 0, 0, length >> 8, length & 0xff]);
const pointer = (to: number): Buffer => Buffer.from([0xc0 | (to >> 8), to & 0xff]);
const labels = (count: number): Buffer =>
  Buffer.concat([...Array.from({ length: count }, () => Buffer.from([1, 0x61])), Buffer.from([0])]);

/** The kinds of queries that break servers. The server under test must have an A record for `a.test`. */
export const hostilePackets: readonly HostilePacket[] = [
  ...Array.from({ length: 12 }, (_, size) => ({
    what: `the first ${size} bytes of a query`,
    bytes: queryBytes('a.test').subarray(0, size),
    expected: 'silence' as const,
  })),
  ...Array.from({ length: queryBytes('a.test', 1, 1232).length - 12 }, (_, more) => ({
    what: `a query with EDNS, cut after ${12 + more} bytes`,
    bytes: queryBytes('a.test', 1, 1232).subarray(0, 12 + more),
    expected: 'FORMERR' as const,
  })),
  { what: 'no question', bytes: header([0, 0, 0, 0]), expected: 'FORMERR' },
  {
    what: 'two questions',
    bytes: Buffer.concat([header([2, 0, 0, 0]), question, question]),
    expected: 'FORMERR',
  },
  {
    what: '65535 claimed questions',
    bytes: Buffer.concat([header([65535, 0, 0, 0]), question]),
    expected: 'FORMERR',
  },
  {
    what: '65535 claimed answers',
    bytes: Buffer.concat([header([1, 65535, 0, 0]), question]),
    expected: 'FORMERR',
  },
  {
    what: '65535 claimed authorities',
    bytes: Buffer.concat([header([1, 0, 65535, 0]), question]),
    expected: 'FORMERR',
  },
  {
    what: '65535 claimed additionals',
    bytes: Buffer.concat([header([1, 0, 0, 65535]), question]),
    expected: 'FORMERR',
  },
  {
    what: 'everything claimed 65535 times',
    bytes: Buffer.concat([header([65535, 65535, 65535, 65535]), question]),
    expected: 'FORMERR',
  },
  {
    what: 'a name that points at itself',
    bytes: Buffer.concat([header([1, 0, 0, 0]), pointer(12), aIn]),
    expected: 'FORMERR',
  },
  {
    what: 'a name that points ahead',
    bytes: Buffer.concat([header([1, 0, 0, 0]), pointer(18), aIn, labels(1)]),
    expected: 'FORMERR',
  },
  {
    what: 'two pointers that name each other',
    bytes: Buffer.concat([header([1, 0, 0, 0]), pointer(14), pointer(12), aIn]),
    expected: 'FORMERR',
  },
  {
    what: 'a name that points into the header',
    bytes: Buffer.concat([header([1, 0, 0, 0]), pointer(4), aIn]),
    expected: 'FORMERR',
  },
  {
    what: 'a thousand pointers in a row',
    bytes: Buffer.concat([
      header([1, 0, 0, 1]),
      question,
      ...Array.from({ length: 1000 }, (_, i) => pointer(12 + 2 * i)),
      aIn,
    ]),
    expected: 'FORMERR',
  },
  {
    what: '127 labels, the most a name can have',
    bytes: Buffer.concat([header([1, 0, 0, 0]), labels(127), aIn]),
    expected: 'whatever',
  },
  {
    what: '128 labels',
    bytes: Buffer.concat([header([1, 0, 0, 0]), labels(128), aIn]),
    expected: 'FORMERR',
  },
  {
    what: '255 labels',
    bytes: Buffer.concat([header([1, 0, 0, 0]), labels(255), aIn]),
    expected: 'FORMERR',
  },
  {
    what: 'a name without end',
    bytes: Buffer.concat([header([1, 0, 0, 0]), Buffer.alloc(400, '\x01a')]),
    expected: 'FORMERR',
  },
  {
    what: 'a label of 64 bytes',
    bytes: Buffer.concat([
      header([1, 0, 0, 0]),
      Buffer.from([64]),
      Buffer.alloc(64, 'a'),
      Buffer.from([0]),
      aIn,
    ]),
    expected: 'FORMERR',
  },
  {
    what: 'a label of the reserved kind',
    bytes: Buffer.concat([header([1, 0, 0, 0]), Buffer.from([0x80, 1, 0]), aIn]),
    expected: 'FORMERR',
  },
  {
    what: 'a label of zero bytes among others',
    bytes: Buffer.concat([
      header([1, 0, 0, 0]),
      Buffer.from('\x03\0\0\0\x04test\0', 'latin1'),
      aIn,
    ]),
    expected: 'whatever',
  },
  {
    what: 'two OPT records',
    bytes: Buffer.concat([header([1, 0, 0, 2]), question, opt(), opt()]),
    expected: 'FORMERR',
  },
  {
    what: 'an OPT that is longer than the message',
    bytes: Buffer.concat([header([1, 0, 0, 1]), question, opt(0, 500)]),
    expected: 'FORMERR',
  },
  {
    what: 'an option that is longer than its OPT',
    bytes: Buffer.concat([
      header([1, 0, 0, 1]),
      question,
      opt(0, 4),
      Buffer.from([0, 10, 0xff, 0xff]),
    ]),
    expected: 'FORMERR',
  },
  {
    what: 'EDNS version 1',
    bytes: Buffer.concat([header([1, 0, 0, 1]), question, opt(1)]),
    expected: 'BADVERS',
  },
  {
    what: 'EDNS version 255',
    bytes: Buffer.concat([header([1, 0, 0, 1]), question, opt(255)]),
    expected: 'BADVERS',
  },
  {
    what: 'a reply',
    bytes: Buffer.concat([header([1, 0, 0, 0], 0x8100), question]),
    expected: 'silence',
  },
  { what: 'a reply without question', bytes: header([0, 0, 0, 0], 0x8180), expected: 'silence' },
  ...[1, 2, 5, 6, 7, 15].map((opcode) => ({
    what: `opcode ${opcode}`,
    bytes: Buffer.concat([header([1, 0, 0, 0], opcode << 11), question]),
    expected: 'NOTIMP' as const,
  })),
  {
    what: 'a whole transfer, asked over UDP',
    bytes: Buffer.concat([
      header([1, 0, 0, 0]),
      question.subarray(0, -4),
      Buffer.from([0, 252, 0, 1]),
    ]),
    expected: 'whatever',
  },
  ...[0, 2, 3, 254, 255].map((qclass) => ({
    what: `class ${qclass}`,
    bytes: Buffer.concat([
      header([1, 0, 0, 0]),
      question.subarray(0, -2),
      Buffer.from([0, qclass]),
    ]),
    expected: 'whatever' as const,
  })),
  {
    what: 'a query of 5000 bytes',
    bytes: Buffer.concat([
      header([1, 0, 0, 0]),
      question,
      Buffer.alloc(5000 - 12 - question.length),
    ]),
    expected: 'FORMERR',
  },
  {
    what: 'the largest datagram there is',
    bytes: Buffer.concat([
      header([1, 0, 0, 0]),
      question,
      Buffer.alloc(65_507 - 12 - question.length, 0xff),
    ]),
    expected: 'FORMERR',
  },
  { what: 'nothing', bytes: Buffer.alloc(0), expected: 'silence' },
];

const codes = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED'];

/** A reply's response code as text. For BADVERS, the OPT record at the end is read too. */
export function rcodeOf(reply: Buffer): string {
  const low = reply[3]! & 15;
  const opts = reply.readUInt16BE(10) === 1 && reply.length >= 23 ? reply.subarray(-11) : null;
  if (opts !== null && opts[0] === 0 && opts[2] === 41 && opts[5] === 1 && low === 0)
    return 'BADVERS';
  return codes[low] ?? `RCODE${low}`;
}
